"""EKS clusters. Moto keeps the names; the documents are kept here, whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from sandbox.clouds.aws.api import Call
from sandbox.clouds.aws.services.nowhere import certificate
from sandbox.clouds.aws.services.support import hexadecimal, refuse, require_groups, require_role, subnets

Document = dict[str, Any]
Key = tuple[str, str]
"""Region and cluster."""
Owned = tuple[str, str, str]
"""Region, cluster and the name of what belongs to it."""

OFFERED_VERSIONS = ("1.33", "1.34", "1.35", "1.36")
"""Kubernetes versions that EKS offers in late 2026."""


class ControlPlanes:
    """The part of EKS that is about clusters.

    belongings: documents of other parts by region, cluster and name; they go with their cluster. tagged: where `TagResource`
    finds what it names. has_open_node: whether a cluster has a node without a taint.
    """

    service = "eks"

    def __init__(self, *, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self.clusters: dict[Key, Document] = {}
        self.belongings: list[dict[Owned, Document]] = []
        self.tagged: list[Mapping[Any, Document]] = [self.clusters]
        self.has_open_node: Callable[[Key], bool] = lambda key: False

    def create_cluster(self, call: Call) -> Document:
        params = dict(call.params)
        require_role(call, params["roleArn"], service="eks.amazonaws.com")
        vpc = params["resourcesVpcConfig"]
        found = subnets(call, vpc.get("subnetIds", []))
        if len({subnet["AvailabilityZone"] for subnet in found}) < 2:
            raise refuse("InvalidParameterException", "Subnets specified must be in at least two different AZs")
        if len({subnet["VpcId"] for subnet in found}) > 1:
            raise refuse("InvalidParameterException", "Subnets specified must be in one VPC")
        if not (vpc.get("endpointPublicAccess", True) or vpc.get("endpointPrivateAccess")):
            raise refuse("InvalidParameterException", "Private and public endpoint access cannot both be false")
        require_groups(call, vpc.get("securityGroupIds", []))
        _require_version(params.get("version"))
        for each in params.get("encryptionConfig", []):
            call.api.moto("kms", "DescribeKey", call.region, {"KeyId": each["provider"]["keyArn"]})
        made = call.forward()["cluster"]
        vpc_id = found[0]["VpcId"]
        group = call.api.moto(
            "ec2",
            "CreateSecurityGroup",
            call.region,
            {
                "GroupName": f"eks-cluster-sg-{params['name']}-{int(hexadecimal(8), 16)}",
                "Description": "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
                "VpcId": vpc_id,
            },
        )
        document = {
            **params,
            "arn": made["arn"],
            "createdAt": call.now,
            "status": "ACTIVE",
            "platformVersion": "eks.1",
            "version": params.get("version", OFFERED_VERSIONS[-1]),
            "identity": {
                "oidc": {"issuer": f"https://oidc.eks.{call.region}.amazonaws.com/id/{hexadecimal(32).upper()}"}
            },
            "kubernetesNetworkConfig": {
                "serviceIpv4Cidr": "172.20.0.0/16",
                "ipFamily": "ipv4",
                **params.get("kubernetesNetworkConfig", {}),
            },
            "upgradePolicy": params.get("upgradePolicy", {"supportType": "EXTENDED"}),
            "accessConfig": {"authenticationMode": "CONFIG_MAP", **params.get("accessConfig", {})},
            "deletionProtection": params.get("deletionProtection", False),
            "tags": params.get("tags", {}),
            "resourcesVpcConfig": {
                "endpointPublicAccess": True,
                "endpointPrivateAccess": False,
                "securityGroupIds": [],
                "publicAccessCidrs": ["0.0.0.0/0"] if vpc.get("endpointPublicAccess", True) else [],
                **vpc,
                "vpcId": vpc_id,
                "clusterSecurityGroupId": group["GroupId"],
            },
            "nowhere": certificate(params["name"], call.now),
        }
        document.pop("bootstrapSelfManagedAddons", None)
        self.clusters[(call.region, params["name"])] = document
        return {"cluster": {"name": params["name"], "arn": made["arn"], "status": "CREATING"}}

    def describe_cluster(self, call: Call) -> Document:
        document = dict(self.cluster(call.region, call.params["name"]))
        nowhere = document.pop("nowhere")
        server, authority = self._place() or ("https://127.0.0.1:1", nowhere)
        return {"cluster": {**document, "endpoint": server, "certificateAuthority": {"data": authority}}}

    def delete_cluster(self, call: Call) -> Document:
        key = (call.region, call.params["name"])
        document = self.cluster(*key)
        if document["deletionProtection"]:
            raise refuse("InvalidRequestException", f"Cluster {key[1]} has deletion protection: turn it off first")
        call.forward()
        group = document["resourcesVpcConfig"]["clusterSecurityGroupId"]
        call.api.moto("ec2", "DeleteSecurityGroup", call.region, {"GroupId": group})
        del self.clusters[key]
        for kept in self.belongings:
            for each in [each for each in kept if each[:2] == key]:
                del kept[each]
        return {"cluster": {"name": key[1], "arn": document["arn"], "status": "DELETING"}}

    def update_cluster_config(self, call: Call) -> Document:
        params = dict(call.params)
        document = self.cluster(call.region, params.pop("name"))
        params.pop("clientRequestToken", None)
        if len(params) != 1:
            raise refuse("InvalidParameterException", f"one kind of update at a time, got {', '.join(sorted(params))}")
        for name, value in params.items():
            document[name] = {**document.get(name, {}), **value} if isinstance(value, dict) else value
        return updated("ConfigUpdate")

    def update_cluster_version(self, call: Call) -> Document:
        document = self.cluster(call.region, call.params["name"])
        _require_version(call.params["version"])
        if minor(call.params["version"]) - minor(document["version"]) not in (0, 1):
            raise refuse(
                "InvalidParameterException",
                f"Unsupported Kubernetes minor version update from {document['version']} to {call.params['version']}",
            )
        document["version"] = call.params["version"]
        return updated("VersionUpdate")

    def associate_encryption_config(self, call: Call) -> Document:
        document = self.cluster(call.region, call.params["clusterName"])
        if document.get("encryptionConfig"):
            raise refuse(
                "InvalidRequestException", "the cluster's secrets are encrypted already; the key can't be changed"
            )
        document["encryptionConfig"] = call.params["encryptionConfig"]
        return updated("AssociateEncryptionConfig")

    def tag_resource(self, call: Call) -> Document:
        self._tagged(call.params["resourceArn"])["tags"].update(call.params["tags"])
        return {}

    def untag_resource(self, call: Call) -> Document:
        tags = self._tagged(call.params["resourceArn"])["tags"]
        for name in call.params["tagKeys"]:
            tags.pop(name, None)
        return {}

    def cluster(self, region: str, name: str) -> Document:
        """The cluster's document; refuses an unknown name."""
        if (region, name) not in self.clusters:
            raise refuse("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self.clusters[(region, name)]

    def keep(self) -> dict[Owned, Document]:
        """A place for documents that go with their cluster and can be tagged."""
        kept: dict[Owned, Document] = {}
        self.belongings.append(kept)
        self.tagged.append(kept)
        return kept

    def _tagged(self, wanted: str) -> Document:
        for kept in self.tagged:
            for document in kept.values():
                if wanted in (
                    document.get("arn"),
                    document.get("addonArn"),
                    document.get("accessEntryArn"),
                    document.get("associationArn"),
                    document.get("nodegroupArn"),
                ):
                    document.setdefault("tags", {})
                    return document
        raise refuse("NotFoundException", f"Resource {wanted} was not found")

    def _place(self) -> tuple[str, str] | None:
        """Server and certificate authority of the embedded control plane."""
        if self._kubeconfig is None:
            return None
        cluster = yaml.safe_load(self._kubeconfig.read_text())["clusters"][0]["cluster"]
        return cluster["server"], cluster["certificate-authority-data"]


def updated(kind: str) -> Document:
    """The answer to an update, which is done at once."""
    return {"update": {"id": hexadecimal(32), "status": "Successful", "type": kind}}


def minor(version: str) -> int:
    """34 of "1.34"."""
    return int(version.split(".")[1])


def _require_version(version: str | None) -> None:
    if version is not None and version not in OFFERED_VERSIONS:
        raise refuse(
            "InvalidParameterException",
            f"unsupported Kubernetes version {version}; offered: {', '.join(OFFERED_VERSIONS)}",
        )
