"""EKS managed node groups: how they are made and changed, and what time and capacity blocks do to them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from sandbox.clouds.aws.api import Api, Call
from sandbox.clouds.aws.machines import machine
from sandbox.clouds.aws.services.access import AccessEntries
from sandbox.clouds.aws.services.capacity import Capacity
from sandbox.clouds.aws.services.control_planes import ControlPlanes, Document, minor, updated
from sandbox.clouds.aws.services.launching import (
    Group,
    check_template,
    launch,
    launch_template,
    make_auto_scaling_group,
)
from sandbox.clouds.aws.services.support import hexadecimal, refuse, require_role, subnets
from sandbox.clouds.clock import moment
from sandbox.clouds.nodes import Machine

SCALE_DOWN = timedelta(minutes=40)
"""EKS scales a capacity block's group to zero this long before the block ends (EKS user guide, capacity-blocks-mng)."""

LAUNCH_FAILURES = "AsgInstanceLaunchFailures"
NodeGroupKey = tuple[str, str, str]
"""Region, cluster, name."""


class NodeGroups:
    """All node groups of the account."""

    service = "eks"

    def __init__(self, control_planes: ControlPlanes, access: AccessEntries, capacity: Capacity) -> None:
        self._control_planes = control_planes
        self._capacity = capacity
        self.groups: dict[NodeGroupKey, Group] = {}
        control_planes.has_open_node = self.has_open_node
        control_planes.tagged.append(_Documents(self.groups))
        self._entries = access.entries

    # Calls.

    def create_nodegroup(self, call: Call) -> Document:
        params = dict(call.params)
        cluster = self._control_planes.cluster(call.region, params["clusterName"])
        require_role(call, params["nodeRole"], service="ec2.amazonaws.com")
        found = subnets(call, params["subnets"])
        version: str = params.get("version") or cluster["version"]
        if minor(version) > minor(cluster["version"]):
            raise refuse(
                "InvalidParameterException", f"node version {version} is newer than the cluster's {cluster['version']}"
            )
        template = launch_template(call, params.get("launchTemplate"))
        check_template(params, template, found)
        scaling = {"minSize": 1, "maxSize": 2, "desiredSize": 2, **params.get("scalingConfig", {})}
        if not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"]:
            raise refuse(
                "InvalidParameterException",
                f"desired capacity {scaling['desiredSize']} must lie between minimum {scaling['minSize']} and maximum {scaling['maxSize']}",
            )
        made = call.forward(tags=params.get("tags", {}))["nodegroup"]
        group = Group(
            document={
                **{name: value for name, value in params.items() if name != "clientRequestToken"},
                "nodegroupArn": made["nodegroupArn"],
                "createdAt": call.now,
                "version": version,
                "releaseVersion": params.get("releaseVersion", f"{version}.0-20260714"),
                "amiType": params.get("amiType", "AL2023_x86_64_STANDARD"),
                "capacityType": params.get("capacityType", "ON_DEMAND"),
                "scalingConfig": scaling,
                "updateConfig": params.get("updateConfig", {"maxUnavailable": 1}),
                "labels": params.get("labels", {}),
                "taints": params.get("taints", []),
                "tags": params.get("tags", {}),
                "resources": {"autoScalingGroups": [{"name": f"eks-{params['nodegroupName']}-{hexadecimal(8)}"}]},
            },
            template=template,
            desired=scaling["desiredSize"],
            instances=[],
            starved_at=call.now if call.starved else None,
        )
        make_auto_scaling_group(call, group)
        self.groups[_key(call)] = group
        principal = (call.region, params["clusterName"], params["nodeRole"])
        if cluster["accessConfig"]["authenticationMode"] != "CONFIG_MAP":
            self._entries.setdefault(principal, _entry_of_nodes(call))
        return {"nodegroup": {"nodegroupName": params["nodegroupName"], "status": "CREATING"}}

    def describe_nodegroup(self, call: Call) -> Document:
        group = self._group(call)
        healthy = len(group.instances) >= group.desired
        issue = None if healthy else self._refusal(group, call.region, call.now)
        issues = [{"code": issue[0], "message": issue[1], "resourceIds": [group.auto_scaling_group]}] if issue else []
        scaling = {**group.document["scalingConfig"], "desiredSize": group.desired}
        status = "ACTIVE" if healthy else "DEGRADED" if issues else "CREATING"
        return {
            "nodegroup": {**group.document, "scalingConfig": scaling, "status": status, "health": {"issues": issues}}
        }

    def list_nodegroups(self, call: Call) -> Document:
        here = (call.region, call.params["clusterName"])
        return {"nodegroups": [name for region, cluster, name in self.groups if (region, cluster) == here]}

    def update_nodegroup_config(self, call: Call) -> Document:
        group = self._active(call)
        document, params = group.document, call.params
        if "scalingConfig" in params:
            scaling = {**document["scalingConfig"], "desiredSize": group.desired, **params["scalingConfig"]}
            if not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"]:
                raise refuse(
                    "InvalidParameterException",
                    f"desired capacity {scaling['desiredSize']} must lie between minimum {scaling['minSize']} and maximum {scaling['maxSize']}",
                )
            document["scalingConfig"], group.desired = scaling, scaling["desiredSize"]
        labels = params.get("labels", {})
        kept = {name: value for name, value in document["labels"].items() if name not in labels.get("removeLabels", [])}
        document["labels"] = {**kept, **labels.get("addOrUpdateLabels", {})}
        taints = params.get("taints", {})
        gone = [
            (each["key"], each["effect"])
            for each in [*taints.get("removeTaints", []), *taints.get("addOrUpdateTaints", [])]
        ]
        stay = [each for each in document["taints"] if (each["key"], each["effect"]) not in gone]
        document["taints"] = [*stay, *taints.get("addOrUpdateTaints", [])]
        for name in ("updateConfig", "nodeRepairConfig"):
            if name in params:
                document[name] = params[name]
        group.starved_at = call.now if call.starved else None
        return updated("ConfigUpdate")

    def update_nodegroup_version(self, call: Call) -> Document:
        """A new version of template or image replaces every instance, one after the other."""
        group = self._active(call)
        template = launch_template(call, call.params.get("launchTemplate"))
        if template:
            check_template(group.document, template, subnets(call, group.document["subnets"]))
            group.template = template
            group.document["launchTemplate"] = call.params["launchTemplate"]
        for name in ("version", "releaseVersion"):
            if name in call.params:
                group.document[name] = call.params[name]
        group.instances = []
        group.starved_at = call.now if call.starved else None
        return updated("VersionUpdate")

    def delete_nodegroup(self, call: Call) -> Document:
        group = self._group(call)
        call.forward()
        call.api.moto(
            "autoscaling",
            "DeleteAutoScalingGroup",
            call.region,
            {"AutoScalingGroupName": group.auto_scaling_group, "ForceDelete": True},
        )
        del self.groups[_key(call)]
        return {"nodegroup": {**group.document, "status": "DELETING"}}

    # Time.

    def settle(self, api: Api, now: datetime) -> None:
        """Launches and ends instances until each group has what is wanted and what capacity allows."""
        for (region, cluster, _), group in self.groups.items():
            self._act_on_schedule(api, region, group, now)
            self._end_with_block(group, now)
            del group.instances[group.desired :]
            while len(group.instances) < group.desired and self._refusal(group, region, now) is None:
                group.instances.append(launch(api, region, cluster, group))
        self._capacity.used = {}
        for group in self.groups.values():
            if group.block:
                self._capacity.used[group.block] = self._capacity.used.get(group.block, 0) + len(group.instances)

    def machines(self) -> list[Machine]:
        """Every instance as the node that it shows to Kubernetes."""
        return [
            machine(instance=instance, group=group.document, instance_type=group.instance_type, region=region)
            for (region, _, _), group in self.groups.items()
            for instance in group.instances
        ]

    def picture(self) -> str:
        """Something that differs exactly when instances or wishes do."""
        return json.dumps(
            [[*key, group.desired, group.instances] for key, group in self.groups.items()], sort_keys=True
        )

    def has_open_node(self, cluster: tuple[str, str]) -> bool:
        """Whether a cluster has a node that any pod may run on."""
        return any(
            key[:2] == cluster and group.instances and not group.document["taints"]
            for key, group in self.groups.items()
        )

    def _act_on_schedule(self, api: Api, region: str, group: Group, now: datetime) -> None:
        name = group.auto_scaling_group
        found = api.moto("autoscaling", "DescribeScheduledActions", region, {"AutoScalingGroupName": name})
        for action in sorted(found["ScheduledUpdateGroupActions"], key=lambda action: str(action.get("StartTime"))):
            start = action.get("StartTime")
            if start is None or action.get("Recurrence") or now < (moment(start) if isinstance(start, str) else start):
                continue
            scaling = group.document["scalingConfig"]
            for member, ours in (("MinSize", "minSize"), ("MaxSize", "maxSize"), ("DesiredCapacity", "desiredSize")):
                if action.get(member) is not None:
                    scaling[ours] = action[member]
            group.desired = scaling["desiredSize"]
            gone = {"AutoScalingGroupName": name, "ScheduledActionName": action["ScheduledActionName"]}
            api.moto("autoscaling", "DeleteScheduledAction", region, gone)

    def _end_with_block(self, group: Group, now: datetime) -> None:
        block = self._capacity.blocks.get(group.block or "")
        if block and group.ended_for_block != block["end"] and now >= moment(block["end"]) - SCALE_DOWN:
            group.ended_for_block = block["end"]
            group.desired = 0
            group.document["scalingConfig"]["desiredSize"] = 0

    def _refusal(self, group: Group, region: str, now: datetime) -> tuple[str, str] | None:
        """Why the next instance does not come: code and message of the group's health issue."""
        if group.starved_at is not None and now <= group.starved_at:
            return (
                LAUNCH_FAILURES,
                "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient capacity in the Availability Zone you requested. Launching EC2 instance failed.",
            )
        cluster = self._control_planes.clusters[(region, group.document["clusterName"])]
        shared = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
        interfaces = group.template.get("NetworkInterfaces", [])
        if any(shared not in interface.get("Groups", []) for interface in interfaces):
            return (
                "NodeCreationFailure",
                f"Instances failed to join the kubernetes cluster: a network interface of the launch template lacks the cluster's security group {shared}",
            )
        if group.block is None:
            return None
        running = sum(len(other.instances) for other in self.groups.values() if other.block == group.block)
        refusal = self._capacity.refusal(
            group.block,
            instance_type=group.instance_type,
            zone=group.document["zones"][0],
            running=running,
            now=now,
        )
        return (LAUNCH_FAILURES, f"Could not launch Capacity Block Instances. {refusal}") if refusal else None

    def _group(self, call: Call) -> Group:
        self._control_planes.cluster(call.region, call.params["clusterName"])
        if _key(call) not in self.groups:
            raise refuse("ResourceNotFoundException", f"No node group found for name: {call.params['nodegroupName']}.")
        return self.groups[_key(call)]

    def _active(self, call: Call) -> Group:
        group = self._group(call)
        status = self.describe_nodegroup(call)["nodegroup"]["status"]
        # A smaller wish may always be said: it is the way out of a group that can't have what it wants.
        shrinks = call.params.get("scalingConfig", {}).get("desiredSize", group.desired) <= len(group.instances)
        if status != "ACTIVE" and not (call.operation == "UpdateNodegroupConfig" and shrinks):
            raise refuse(
                "InvalidRequestException", "Nodegroup cannot be updated as it is currently not in Active State"
            )
        return group


class _Documents(dict[Any, Document]):
    """The groups' documents, looked up as they are now."""

    def __init__(self, groups: dict[NodeGroupKey, Group]) -> None:
        super().__init__()
        self._groups = groups

    def values(self) -> Any:
        return [group.document for group in self._groups.values()]


def _key(call: Call) -> NodeGroupKey:
    return call.region, call.params["clusterName"], call.params["nodegroupName"]


def _entry_of_nodes(call: Call) -> Document:
    role = call.params["nodeRole"]
    return {
        "clusterName": call.params["clusterName"],
        "principalArn": role,
        "kubernetesGroups": ["system:nodes"],
        "accessEntryArn": role.replace(":iam:", f":eks:{call.region}:"),
        "createdAt": call.now,
        "modifiedAt": call.now,
        "username": "system:node:{{EC2PrivateDNSName}}",
        "type": "EC2_LINUX",
        "tags": {},
    }
