"""EKS managed node groups: their rules, their Auto Scaling group, and the instances that it launches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Network
from typing import Any

from moto.moto_api._internal import mock_random

from sandbox.clouds.aws.api import Api, Call
from sandbox.clouds.aws.machines import machine
from sandbox.clouds.aws.services.capacity import Capacity
from sandbox.clouds.aws.services.control_planes import ControlPlanes, Document, minor
from sandbox.clouds.aws.services.support import hexadecimal, refuse, require_role, subnets
from sandbox.clouds.clock import moment
from sandbox.clouds.nodes import Machine
from sandbox.clouds.tables import CloudError

SCALE_DOWN = timedelta(minutes=40)
"""EKS scales a capacity block's group to zero this long before the block ends (EKS user guide, capacity-blocks-mng)."""

LAUNCH_FAILURES = "AsgInstanceLaunchFailures"
NodeGroupKey = tuple[str, str, str]
"""Region, cluster, name."""


@dataclass
class Group:
    """A node group's document, its Auto Scaling group's wish, and its instances."""

    document: Document
    template: Document
    desired: int
    instances: list[Document]
    starved_at: datetime | None = None
    ended_for_block: str | None = None

    @property
    def block(self) -> str | None:
        """The reservation that its launch template targets."""
        target = self.template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        reservation: str | None = target.get("CapacityReservationId")
        return reservation

    @property
    def instance_type(self) -> str:
        types = self.document.get("instanceTypes") or [self.template.get("InstanceType") or "t3.medium"]
        return str(types[0])

    @property
    def auto_scaling_group(self) -> str:
        return str(self.document["resources"]["autoScalingGroups"][0]["name"])


class NodeGroups:
    """All node groups of the account."""

    service = "eks"

    def __init__(self, control_planes: ControlPlanes, capacity: Capacity) -> None:
        self._control_planes = control_planes
        self._capacity = capacity
        self.groups: dict[NodeGroupKey, Group] = {}
        control_planes.has_open_node = self.has_open_node
        control_planes.more_tagged = _Documents(self.groups)

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
        template = _template(call, params.get("launchTemplate"))
        _check_template(params, template, found)
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
        _make_auto_scaling_group(call, group)
        self.groups[_key(call)] = group
        principal = (call.region, params["clusterName"], params["nodeRole"])
        if cluster["accessConfig"]["authenticationMode"] != "CONFIG_MAP":
            self._control_planes.entries.setdefault(principal, _entry_of_nodes(call))
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
        return _updated("ConfigUpdate")

    def update_nodegroup_version(self, call: Call) -> Document:
        """A new version of template or image replaces every instance, one after the other."""
        group = self._active(call)
        template = _template(call, call.params.get("launchTemplate"))
        if template:
            _check_template(group.document, template, subnets(call, group.document["subnets"]))
            group.template = template
            group.document["launchTemplate"] = call.params["launchTemplate"]
        for name in ("version", "releaseVersion"):
            if name in call.params:
                group.document[name] = call.params[name]
        group.instances = []
        group.starved_at = call.now if call.starved else None
        return _updated("VersionUpdate")

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
                group.instances.append(_launch(api, region, cluster, group))
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


def _template(call: Call, named: Document | None) -> Document:
    """The launch template's data; refuses a template or version that does not exist."""
    if not named:
        return {}
    which = {"LaunchTemplateId": named["id"]} if "id" in named else {"LaunchTemplateName": named["name"]}
    try:
        found = call.api.moto(
            "ec2",
            "DescribeLaunchTemplateVersions",
            call.region,
            {**which, "Versions": [named.get("version", "$Default")]},
        )
    except CloudError as error:
        raise refuse("InvalidParameterException", f"launch template {named}: {error}") from error
    if not found["LaunchTemplateVersions"]:
        raise refuse("InvalidParameterException", f"launch template {named} has no such version")
    return dict(found["LaunchTemplateVersions"][0]["LaunchTemplateData"])


def _check_template(params: Document, template: Document, found: list[Document]) -> None:
    """The rules of EKS for launch templates and capacity blocks (EKS user guide, launch-templates, capacity-blocks-mng)."""
    params["zones"] = sorted({subnet["AvailabilityZone"] for subnet in found})
    if template.get("InstanceType") and params.get("instanceTypes"):
        raise refuse("InvalidParameterException", "Cannot specify instance types in launch template and API request")
    if any(interface.get("SubnetId") for interface in template.get("NetworkInterfaces", [])):
        raise refuse("InvalidParameterException", "Launch template should not specify a subnet: the node group does")
    if template.get("IamInstanceProfile"):
        raise refuse(
            "InvalidParameterException", "Launch template should not specify an instance profile: the node role is used"
        )
    if template.get("SecurityGroupIds") and template.get("NetworkInterfaces"):
        raise refuse(
            "InvalidParameterException",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    market = template.get("InstanceMarketOptions", {}).get("MarketType")
    target = template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget")
    if market == "spot":
        raise refuse(
            "InvalidParameterException", "Launch template should not specify Spot: the node group's capacity type does"
        )
    if params.get("capacityType") == "CAPACITY_BLOCK":
        if not template.get("InstanceType") or market != "capacity-block" or not target:
            raise refuse(
                "InvalidParameterException",
                "capacity type CAPACITY_BLOCK needs a launch template with an instance type, the market type capacity-block and a target reservation",
            )
        if len(params["zones"]) != 1:
            raise refuse(
                "InvalidParameterException",
                f"capacity type CAPACITY_BLOCK needs subnets of exactly one Availability Zone, got {', '.join(params['zones'])}",
            )
    elif market == "capacity-block":
        raise refuse("InvalidParameterException", "market type capacity-block needs the capacity type CAPACITY_BLOCK")


def _make_auto_scaling_group(call: Call, group: Group) -> None:
    """Instances are kept here, not in moto: its group stays empty and serves what hangs on it."""
    named = group.document.get("launchTemplate")
    which = {"LaunchTemplateId": named["id"]} if named and "id" in named else None
    if which is None:
        made = call.api.moto(
            "ec2",
            "CreateLaunchTemplate",
            call.region,
            {
                "LaunchTemplateName": f"eks-{hexadecimal(8)}",
                "LaunchTemplateData": {"InstanceType": group.instance_type},
            },
        )
        which = {"LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"]}
    call.api.moto(
        "autoscaling",
        "CreateAutoScalingGroup",
        call.region,
        {
            "AutoScalingGroupName": group.auto_scaling_group,
            "MinSize": 0,
            "MaxSize": group.document["scalingConfig"]["maxSize"],
            "DesiredCapacity": 0,
            "LaunchTemplate": which,
            "VPCZoneIdentifier": ",".join(group.document["subnets"]),
        },
    )


def _launch(api: Api, region: str, cluster: str, group: Group) -> Document:
    ids = group.document["subnets"]
    found = api.moto("ec2", "DescribeSubnets", region, {"SubnetIds": ids})["Subnets"]
    by_id = {subnet["SubnetId"]: subnet for subnet in found}
    subnet = by_id[ids[len(group.instances) % len(ids)]]
    network = IPv4Network(subnet["CidrBlock"])
    address = network[mock_random.randint(10, network.num_addresses - 2)]
    return {
        "id": f"i-{hexadecimal()}",
        "name": f"ip-{str(address).replace('.', '-')}.{region}.compute.internal",
        "address": str(address),
        "zone": subnet["AvailabilityZone"],
        "zoneId": subnet["AvailabilityZoneId"],
        "cluster": cluster,
    }


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


def _updated(kind: str) -> Document:
    return {"update": {"id": hexadecimal(32), "status": "Successful", "type": kind}}
