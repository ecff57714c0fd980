"""EKS clusters, add-ons, access and pod identities. Moto keeps the names; the documents are kept here, whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sandbox.clouds.aws.api import Call
from sandbox.clouds.aws.services.nowhere import certificate
from sandbox.clouds.aws.services.support import arn, hexadecimal, refuse, require_groups, require_role, subnets

Document = dict[str, Any]
Key = tuple[str, str]
"""Region and cluster."""

ADDONS = frozenset(
    {
        "amazon-cloudwatch-observability",
        "aws-ebs-csi-driver",
        "aws-efs-csi-driver",
        "aws-fsx-csi-driver",
        "aws-mountpoint-s3-csi-driver",
        "cert-manager",
        "coredns",
        "eks-node-monitoring-agent",
        "eks-pod-identity-agent",
        "external-dns",
        "kube-proxy",
        "kube-state-metrics",
        "metrics-server",
        "prometheus-node-exporter",
        "snapshot-controller",
        "vpc-cni",
    }
)
"""Add-ons that EKS offers (EKS user guide, available add-ons); another name is refused as EKS refuses it."""

NEED_NODES = frozenset({"coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver", "metrics-server"})
"""Add-ons with a Deployment: degraded while there is no node without a taint."""

DEFAULT_ADDON_VERSION = "v1.0.0-eksbuild.1"
"""Stands for whatever EKS would choose: the simulation has no list of releases."""

OFFERED_VERSIONS = ("1.33", "1.34", "1.35", "1.36")
"""Kubernetes versions that EKS offers in late 2026."""


class ControlPlanes:
    """The part of EKS that is about clusters. has_open_node: whether a cluster has a node without a taint."""

    service = "eks"

    def __init__(self, *, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self.clusters: dict[Key, Document] = {}
        self.addons: dict[tuple[str, str, str], Document] = {}
        self.entries: dict[tuple[str, str, str], Document] = {}
        self.policies: dict[tuple[str, str, str], dict[str, Document]] = {}
        self.identities: dict[tuple[str, str, str], Document] = {}
        self.more_tagged: dict[Any, Document] = {}
        self.has_open_node: Callable[[Key], bool] = lambda key: False

    # Clusters.

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
        for kept in (self.addons, self.entries, self.policies, self.identities):
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
        return self._updated("ConfigUpdate")

    def update_cluster_version(self, call: Call) -> Document:
        document = self.cluster(call.region, call.params["name"])
        _require_version(call.params["version"])
        if minor(call.params["version"]) - minor(document["version"]) not in (0, 1):
            raise refuse(
                "InvalidParameterException",
                f"Unsupported Kubernetes minor version update from {document['version']} to {call.params['version']}",
            )
        document["version"] = call.params["version"]
        return self._updated("VersionUpdate")

    def associate_encryption_config(self, call: Call) -> Document:
        document = self.cluster(call.region, call.params["clusterName"])
        if document.get("encryptionConfig"):
            raise refuse(
                "InvalidRequestException", "the cluster's secrets are encrypted already; the key can't be changed"
            )
        document["encryptionConfig"] = call.params["encryptionConfig"]
        return self._updated("AssociateEncryptionConfig")

    def tag_resource(self, call: Call) -> Document:
        self._tagged(call.params["resourceArn"])["tags"].update(call.params["tags"])
        return {}

    def untag_resource(self, call: Call) -> Document:
        tags = self._tagged(call.params["resourceArn"])["tags"]
        for name in call.params["tagKeys"]:
            tags.pop(name, None)
        return {}

    # Add-ons.

    def create_addon(self, call: Call) -> Document:
        params = dict(call.params)
        cluster, name = params["clusterName"], params["addonName"]
        self.cluster(call.region, cluster)
        if name not in ADDONS:
            raise refuse("InvalidParameterException", f"Addon {name} specified is not supported")
        if (call.region, cluster, name) in self.addons:
            raise refuse("ResourceInUseException", f"Addon {name} already exists in cluster {cluster}")
        version = params.get("addonVersion", DEFAULT_ADDON_VERSION)
        if not re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", version):
            raise refuse("InvalidParameterException", f"Addon version {version} is not supported")
        bound = [
            self._bind(call, cluster, {**each, "namespace": "kube-system"})["associationArn"]
            for each in params.get("podIdentityAssociations", [])
        ]
        self.addons[(call.region, cluster, name)] = {
            **{
                key: value
                for key, value in params.items()
                if key not in ("resolveConflicts", "podIdentityAssociations")
            },
            "addonVersion": version,
            "addonArn": arn("eks", call.region, f"addon/{cluster}/{name}/{hexadecimal(8)}"),
            "createdAt": call.now,
            "modifiedAt": call.now,
            "podIdentityAssociations": bound,
            "tags": params.get("tags", {}),
        }
        return {"addon": self._addon(call, cluster, name)}

    def describe_addon(self, call: Call) -> Document:
        return {"addon": self._addon(call, call.params["clusterName"], call.params["addonName"])}

    def update_addon(self, call: Call) -> Document:
        cluster, name = call.params["clusterName"], call.params["addonName"]
        self._addon(call, cluster, name)
        kept = self.addons[(call.region, cluster, name)]
        if "podIdentityAssociations" in call.params:
            self._unbind(kept["podIdentityAssociations"])
            kept["podIdentityAssociations"] = [
                self._bind(call, cluster, {**each, "namespace": "kube-system"})["associationArn"]
                for each in call.params["podIdentityAssociations"]
            ]
        for member in ("addonVersion", "configurationValues", "serviceAccountRoleArn"):
            if member in call.params:
                kept[member] = call.params[member]
        kept["modifiedAt"] = call.now
        return self._updated("AddonUpdate")

    def delete_addon(self, call: Call) -> Document:
        addon = self._addon(call, call.params["clusterName"], call.params["addonName"])
        self._unbind(addon["podIdentityAssociations"])
        del self.addons[(call.region, call.params["clusterName"], call.params["addonName"])]
        return {"addon": {**addon, "status": "DELETING"}}

    def list_addons(self, call: Call) -> Document:
        here = (call.region, call.params["clusterName"])
        return {"addons": [name for region, cluster, name in self.addons if (region, cluster) == here]}

    def _addon(self, call: Call, cluster: str, name: str) -> Document:
        self.cluster(call.region, cluster)
        kept = self.addons.get((call.region, cluster, name))
        if kept is None:
            raise refuse("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster}")
        healthy = name not in NEED_NODES or self.has_open_node((call.region, cluster))
        issues = (
            []
            if healthy
            else [
                {
                    "code": "InsufficientNumberOfReplicas",
                    "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
                }
            ]
        )
        return {**kept, "status": "ACTIVE" if healthy else "DEGRADED", "health": {"issues": issues}}

    # Access.

    def create_access_entry(self, call: Call) -> Document:
        params = dict(call.params)
        cluster = self.cluster(call.region, params["clusterName"])
        if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise refuse(
                "InvalidRequestException", "the cluster's authentication mode must be API or API_AND_CONFIG_MAP"
            )
        key = (call.region, params["clusterName"], params["principalArn"])
        if key in self.entries:
            raise refuse(
                "ResourceInUseException",
                f"The specified access entry resource is already in use on this cluster: {key[2]}",
            )
        self.entries[key] = {
            "type": "STANDARD",
            "kubernetesGroups": [],
            "username": params["principalArn"],
            "tags": {},
            **params,
            "accessEntryArn": arn(
                "eks",
                call.region,
                f"access-entry/{key[1]}/role/{params['principalArn'].rsplit('/', 1)[-1]}/{hexadecimal(8)}",
            ),
            "createdAt": call.now,
            "modifiedAt": call.now,
        }
        return {"accessEntry": self.entries[key]}

    def describe_access_entry(self, call: Call) -> Document:
        return {"accessEntry": self._entry(call)}

    def update_access_entry(self, call: Call) -> Document:
        entry = self._entry(call)
        entry.update({name: call.params[name] for name in ("kubernetesGroups", "username") if name in call.params})
        return {"accessEntry": entry}

    def delete_access_entry(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        del self.entries[key]
        self.policies.pop(key, None)
        return {}

    def associate_access_policy(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        scope = call.params["accessScope"]
        if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
            raise refuse(
                "InvalidParameterException", "an access scope lists namespaces exactly when its type is namespace"
            )
        associated = {
            "policyArn": call.params["policyArn"],
            "accessScope": scope,
            "associatedAt": call.now,
            "modifiedAt": call.now,
        }
        self.policies.setdefault(key, {})[call.params["policyArn"]] = associated
        return {"clusterName": key[1], "principalArn": key[2], "associatedAccessPolicy": associated}

    def list_associated_access_policies(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        return {
            "clusterName": key[1],
            "principalArn": key[2],
            "associatedAccessPolicies": list(self.policies.get(key, {}).values()),
        }

    def disassociate_access_policy(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        if self.policies.get(key, {}).pop(call.params["policyArn"], None) is None:
            raise refuse("ResourceNotFoundException", f"{call.params['policyArn']} is not associated with {key[2]}")
        return {}

    def _entry(self, call: Call) -> Document:
        self.cluster(call.region, call.params["clusterName"])
        entry = self.entries.get((call.region, call.params["clusterName"], call.params["principalArn"]))
        if entry is None:
            raise refuse(
                "ResourceNotFoundException",
                f"The specified principalArn could not be found: {call.params['principalArn']}",
            )
        return entry

    # Pod identities.

    def create_pod_identity_association(self, call: Call) -> Document:
        return {"association": self._bind(call, call.params["clusterName"], call.params)}

    def describe_pod_identity_association(self, call: Call) -> Document:
        return {"association": self._identity(call)}

    def update_pod_identity_association(self, call: Call) -> Document:
        identity = self._identity(call)
        if "roleArn" in call.params:
            require_role(call, call.params["roleArn"], service="pods.eks.amazonaws.com")
        members = ("roleArn", "targetRoleArn", "disableSessionTags", "policy")
        identity.update({name: call.params[name] for name in members if name in call.params})
        return {"association": identity}

    def delete_pod_identity_association(self, call: Call) -> Document:
        identity = self._identity(call)
        if "ownerArn" in identity:
            raise refuse("InvalidRequestException", "the association is an add-on's: change the add-on")
        del self.identities[(call.region, call.params["clusterName"], call.params["associationId"])]
        return {"association": identity}

    def _bind(self, call: Call, cluster: str, wanted: Document) -> Document:
        self.cluster(call.region, cluster)
        require_role(call, wanted["roleArn"], service="pods.eks.amazonaws.com")
        account = (wanted["namespace"], wanted["serviceAccount"])
        for (region, other, _), identity in self.identities.items():
            if (region, other) == (call.region, cluster) and (
                identity["namespace"],
                identity["serviceAccount"],
            ) == account:
                raise refuse("ResourceInUseException", f"Association already exists: {identity['associationId']}")
        id = f"a-{hexadecimal()}"
        identity = {
            "tags": {},
            **{name: value for name, value in wanted.items() if name != "clientRequestToken"},
            "clusterName": cluster,
            "associationId": id,
            "associationArn": arn("eks", call.region, f"podidentityassociation/{cluster}/{id}"),
            "createdAt": call.now,
            "modifiedAt": call.now,
        }
        self.identities[(call.region, cluster, id)] = identity
        return identity

    def _unbind(self, arns: list[str]) -> None:
        for key in [key for key, identity in self.identities.items() if identity["associationArn"] in arns]:
            del self.identities[key]

    def _identity(self, call: Call) -> Document:
        key = (call.region, call.params["clusterName"], call.params["associationId"])
        if key not in self.identities:
            raise refuse("ResourceNotFoundException", f"no pod identity association {key[2]} in {key[1]}")
        return self.identities[key]

    # Shared.

    def cluster(self, region: str, name: str) -> Document:
        """The cluster's document; refuses an unknown name."""
        if (region, name) not in self.clusters:
            raise refuse("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self.clusters[(region, name)]

    def _tagged(self, wanted: str) -> Document:
        for kept in (self.clusters, self.addons, self.entries, self.identities, self.more_tagged):
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

    def _updated(self, kind: str) -> Document:
        return {"update": {"id": hexadecimal(32), "status": "Successful", "type": kind}}

    def _place(self) -> tuple[str, str] | None:
        """Server and certificate authority of the embedded control plane."""
        if self._kubeconfig is None:
            return None
        cluster = yaml.safe_load(self._kubeconfig.read_text())["clusters"][0]["cluster"]
        return cluster["server"], cluster["certificate-authority-data"]


def minor(version: str) -> int:
    """34 of "1.34"."""
    return int(version.split(".")[1])


def _require_version(version: str | None) -> None:
    if version is not None and version not in OFFERED_VERSIONS:
        raise refuse(
            "InvalidParameterException",
            f"unsupported Kubernetes version {version}; offered: {', '.join(OFFERED_VERSIONS)}",
        )
