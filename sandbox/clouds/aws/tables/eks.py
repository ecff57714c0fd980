"""EKS: clusters, add-ons, access, pod identities, node groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging, only_one
from sandbox.clouds.tables import Autoname, NotReadyError, Values


class EksTable(AwsTable):
    """A resource of EKS: tagged by ARN with a map."""

    service = "eks"
    tagging = Tagging("tags", "map")
    arn_member = "arn"

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        arn = self.describe(call, id)[self.arn_member]
        if old.keys() - new.keys():
            call("UntagResource", resourceArn=arn, tagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", resourceArn=arn, tags=dict(new))


class Cluster(EksTable):
    token = "aws:eks/cluster:Cluster"
    operation = "CreateCluster"
    autoname = Autoname("name", max_length=100)
    names = {"vpcConfig": "resourcesVpcConfig", "enabledClusterLogTypes": "logging"}
    answer_names = {
        "vpcConfig": "resourcesVpcConfig",
        "enabledClusterLogTypes": "",
        "identities": "identity",
        "identities.oidcs": "oidc",
        "certificateAuthority": "certificateAuthority",
        "certificateAuthorities": "certificateAuthority",
        "bootstrapSelfManagedAddons": "",
    }
    computed = frozenset({"vpcConfig.clusterSecurityGroupId", "vpcConfig.vpcId"})
    parts = (
        Part(
            (
                "vpcConfig.endpointPrivateAccess",
                "vpcConfig.endpointPublicAccess",
                "vpcConfig.publicAccessCidrs",
                "vpcConfig.subnetIds",
                "vpcConfig.securityGroupIds",
            ),
            "set_network",
            at_create=False,
        ),
        Part(("enabledClusterLogTypes",), "set_logging", at_create=False),
        Part(("version",), "set_version", at_create=False),
        Part(("upgradePolicy",), "set_upgrade_policy", at_create=False),
        Part(("accessConfig.authenticationMode",), "set_access", at_create=False),
        Part(("deletionProtection",), "set_protection", at_create=False),
        Part(("zonalShiftConfig",), "set_zonal_shift", at_create=False),
    )
    provider_only = frozenset({"defaultAddonsToRemoves", "forceUpdateVersion"})

    def request(self, inputs: Values) -> dict[str, Any]:
        made = super().request({name: value for name, value in inputs.items() if name != "enabledClusterLogTypes"})
        types = inputs.get("enabledClusterLogTypes")
        return {**made, **({"logging": _logging(types)} if types else {})}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["name"])

    def await_ready(self, call: Caller, id: str, inputs: Values) -> None:
        _require_active(id, self.describe(call, id))

    def set_network(self, call: Caller, id: str, old: Values, new: Values) -> None:
        wanted, before = new["vpcConfig"], old.get("vpcConfig", {})
        # Access and subnets are two kinds of update, and EKS takes one kind at a time.
        for names in (
            ("endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs"),
            ("subnetIds", "securityGroupIds"),
        ):
            if any(wanted.get(name) != before.get(name) for name in names):
                call(
                    "UpdateClusterConfig",
                    name=id,
                    resourcesVpcConfig={name: wanted[name] for name in names if name in wanted},
                )

    def set_logging(self, call: Caller, id: str, old: Values, new: Values) -> None:
        now, before = new.get("enabledClusterLogTypes") or [], old.get("enabledClusterLogTypes") or []
        off = [{"types": sorted(set(before) - set(now)), "enabled": False}] if set(before) - set(now) else []
        on = [{"types": list(now), "enabled": True}] if now else []
        call("UpdateClusterConfig", name=id, logging={"clusterLogging": [*on, *off]})

    def set_version(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateClusterVersion", name=id, version=new["version"])

    def set_upgrade_policy(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateClusterConfig", name=id, upgradePolicy=new["upgradePolicy"])

    def set_access(self, call: Caller, id: str, old: Values, new: Values) -> None:
        mode = new["accessConfig"]["authenticationMode"]
        call("UpdateClusterConfig", name=id, accessConfig={"authenticationMode": mode})

    def set_protection(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateClusterConfig", name=id, deletionProtection=new.get("deletionProtection", False))

    def set_zonal_shift(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateClusterConfig", name=id, zonalShiftConfig=new["zonalShiftConfig"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("DescribeCluster", name=id)["cluster"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        logging = answer.get("logging", {}).get("clusterLogging", [])
        on = [name for each in logging if each.get("enabled") for name in each.get("types", [])]
        return {
            "enabledClusterLogTypes": on or None,
            # EKS has no cluster id of its own outside Outposts.
            "clusterId": None,
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteCluster", name=id)


def _logging(types: list[str]) -> dict[str, Any]:
    return {"clusterLogging": [{"types": list(types), "enabled": True}]}


class Addon(EksTable):
    token = "aws:eks/addon:Addon"
    operation = "CreateAddon"
    arn_member = "addonArn"
    names = {"resolveConflictsOnCreate": "resolveConflicts"}
    answer_names = {"arn": "addonArn", "podIdentityAssociations": ""}
    computed = frozenset({"addonVersion"})
    parts = (
        Part(
            ("addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations"),
            "change",
            at_create=False,
        ),
    )
    provider_only = frozenset({"resolveConflictsOnUpdate", "preserve"})

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['clusterName']}:{inputs['addonName']}"

    def await_ready(self, call: Caller, id: str, inputs: Values) -> None:
        _require_active(id, self.describe(call, id))

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        names = ("addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations")
        members = {name: new.get(name) for name in names if new.get(name) != old.get(name)}
        if "podIdentityAssociations" in members:
            members["podIdentityAssociations"] = members["podIdentityAssociations"] or []
        cluster, _, name = id.partition(":")
        call(
            "UpdateAddon",
            clusterName=cluster,
            addonName=name,
            resolveConflicts=new.get("resolveConflictsOnUpdate"),
            **members,
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        cluster, _, name = id.partition(":")
        return dict(call("DescribeAddon", clusterName=cluster, addonName=name)["addon"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        bound = []
        for arn in answer.get("podIdentityAssociations", []):
            one = call(
                "DescribePodIdentityAssociation",
                clusterName=answer["clusterName"],
                associationId=arn.rsplit("/", 1)[-1],
            )
            bound.append(
                {"roleArn": one["association"]["roleArn"], "serviceAccount": one["association"]["serviceAccount"]}
            )
        return {"podIdentityAssociations": bound or None}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        cluster, _, name = id.partition(":")
        self.caller(inputs)("DeleteAddon", clusterName=cluster, addonName=name, preserve=properties.get("preserve"))


class AccessEntry(EksTable):
    token = "aws:eks/accessEntry:AccessEntry"
    operation = "CreateAccessEntry"
    arn_member = "accessEntryArn"
    names = {"userName": "username"}
    answer_names = {"userName": "username"}
    parts = (Part(("kubernetesGroups", "userName"), "change", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['clusterName']}:{inputs['principalArn']}"

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        cluster, _, principal = id.partition(":")
        call(
            "UpdateAccessEntry",
            clusterName=cluster,
            principalArn=principal,
            kubernetesGroups=new.get("kubernetesGroups", []),
            username=new.get("userName"),
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        cluster, _, principal = id.partition(":")
        return dict(call("DescribeAccessEntry", clusterName=cluster, principalArn=principal)["accessEntry"])

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        cluster, _, principal = id.partition(":")
        self.caller(inputs)("DeleteAccessEntry", clusterName=cluster, principalArn=principal)


class AccessPolicyAssociation(AwsTable):
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    service, operation = "eks", "AssociateAccessPolicy"
    parts = (Part(("accessScope",), "put", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['clusterName']}#{inputs['principalArn']}#{inputs['policyArn']}"

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(self.operation, **self.request(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        cluster, principal, policy = id.split("#")
        found = call("ListAssociatedAccessPolicies", clusterName=cluster, principalArn=principal)[
            "associatedAccessPolicies"
        ]
        matching = [each for each in found if each["policyArn"] == policy]
        return {**only_one(matching, id), "clusterName": cluster, "principalArn": principal}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        cluster, principal, policy = id.split("#")
        self.caller(inputs)("DisassociateAccessPolicy", clusterName=cluster, principalArn=principal, policyArn=policy)


class PodIdentityAssociation(EksTable):
    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    operation = "CreatePodIdentityAssociation"
    arn_member = "associationArn"
    parts = (Part(("roleArn", "targetRoleArn", "disableSessionTags", "policy"), "change", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['clusterName']}:{answer['association']['associationId']}"

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        cluster, _, association = id.partition(":")
        names = ("roleArn", "targetRoleArn", "disableSessionTags", "policy")
        call(
            "UpdatePodIdentityAssociation",
            clusterName=cluster,
            associationId=association,
            **{name: new.get(name) for name in names},
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        cluster, _, association = id.partition(":")
        return dict(
            call("DescribePodIdentityAssociation", clusterName=cluster, associationId=association)["association"]
        )

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        cluster, _, association = id.partition(":")
        self.caller(inputs)("DeletePodIdentityAssociation", clusterName=cluster, associationId=association)


class NodeGroup(EksTable):
    """Documented to be replaced by another AMI type, capacity type, disk, instance type, template, role or subnet
    (terraform-provider-aws, ForceNew): no update call takes those."""

    token = "aws:eks/nodeGroup:NodeGroup"
    operation = "CreateNodegroup"
    autoname = Autoname("nodeGroupName", max_length=63, prefix_property="nodeGroupNamePrefix")
    arn_member = "nodegroupArn"
    names = {"nodeGroupName": "nodegroupName", "nodeRoleArn": "nodeRole", "subnetIds": "subnets"}
    answer_names = {**names, "arn": "nodegroupArn", "launchTemplate.id": "id"}
    computed = frozenset({"releaseVersion", "launchTemplate.name"})
    parts = (
        Part(("scalingConfig", "labels", "taints", "updateConfig", "nodeRepairConfig"), "configure", at_create=False),
        Part(("version", "releaseVersion", "launchTemplate.version"), "roll", at_create=False),
    )
    provider_only = frozenset({"nodeGroupNamePrefix", "forceUpdateVersion"})

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['clusterName']}:{inputs['nodeGroupName']}"

    def await_ready(self, call: Caller, id: str, inputs: Values) -> None:
        _require_active(id, self.describe(call, id))

    def configure(self, call: Caller, id: str, old: Values, new: Values) -> None:
        request = self.request(new)
        members = {
            name: request.get(name)
            for name in ("scalingConfig", "updateConfig", "nodeRepairConfig")
            if old.get(name) != new.get(name)
        }
        labels, before = new.get("labels") or {}, old.get("labels") or {}
        if labels != before:
            members["labels"] = {
                "addOrUpdateLabels": {name: value for name, value in labels.items() if before.get(name) != value},
                "removeLabels": sorted(before.keys() - labels.keys()),
            }
        taints, earlier = new.get("taints") or [], old.get("taints") or []
        if taints != earlier:
            members["taints"] = {
                "addOrUpdateTaints": [taint for taint in taints if taint not in earlier],
                "removeTaints": [taint for taint in earlier if taint not in taints],
            }
        call("UpdateNodegroupConfig", **_where(id), **{name: value for name, value in members.items() if value})

    def roll(self, call: Caller, id: str, old: Values, new: Values) -> None:
        template = new.get("launchTemplate")
        members: Values = {
            name: new[name] for name in ("version", "releaseVersion") if name in new and new[name] != old.get(name)
        }
        if template and template != old.get("launchTemplate"):
            members["launchTemplate"] = template
        call("UpdateNodegroupVersion", **_where(id), force=new.get("forceUpdateVersion"), **members)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("DescribeNodegroup", **_where(id))["nodegroup"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        group = answer["resources"]["autoScalingGroups"][0]["name"]
        return {"resources": [{"autoscalingGroups": [{"name": group}]}]}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteNodegroup", **_where(id))


def _where(id: str) -> dict[str, str]:
    cluster, _, name = id.partition(":")
    return {"clusterName": cluster, "nodegroupName": name}


def _require_active(id: str, document: dict[str, Any]) -> None:
    """The provider waits for ACTIVE; what stands in another state here would stand in it for ever."""
    if document["status"] != "ACTIVE":
        issues = document.get("health", {}).get("issues", [])
        told = "; ".join(f"{issue['code']}: {issue['message']}" for issue in issues)
        raise NotReadyError(id, f"unexpected state '{document['status']}', wanted target 'ACTIVE'. last error: {told}")


TABLES = (Cluster, Addon, AccessEntry, AccessPolicyAssociation, PodIdentityAssociation, NodeGroup)
