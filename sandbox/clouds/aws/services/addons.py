"""EKS add-ons."""

from __future__ import annotations

import re

from sandbox.clouds.aws.api import Call
from sandbox.clouds.aws.services.access import PodIdentities
from sandbox.clouds.aws.services.control_planes import ControlPlanes, Document, updated
from sandbox.clouds.aws.services.support import arn, hexadecimal, refuse

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


class Addons:
    """The part of EKS that is about add-ons."""

    service = "eks"

    def __init__(self, control_planes: ControlPlanes, identities: PodIdentities) -> None:
        self._control_planes = control_planes
        self._identities = identities
        self.addons = control_planes.keep()

    def create_addon(self, call: Call) -> Document:
        params = dict(call.params)
        cluster, name = params["clusterName"], params["addonName"]
        self._control_planes.cluster(call.region, cluster)
        if name not in ADDONS:
            raise refuse("InvalidParameterException", f"Addon {name} specified is not supported")
        if (call.region, cluster, name) in self.addons:
            raise refuse("ResourceInUseException", f"Addon {name} already exists in cluster {cluster}")
        version = params.get("addonVersion", DEFAULT_ADDON_VERSION)
        if not re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", version):
            raise refuse("InvalidParameterException", f"Addon version {version} is not supported")
        bound = [
            self._identities.bind(call, cluster, {**each, "namespace": "kube-system"})["associationArn"]
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
            self._identities.unbind(kept["podIdentityAssociations"])
            kept["podIdentityAssociations"] = [
                self._identities.bind(call, cluster, {**each, "namespace": "kube-system"})["associationArn"]
                for each in call.params["podIdentityAssociations"]
            ]
        for member in ("addonVersion", "configurationValues", "serviceAccountRoleArn"):
            if member in call.params:
                kept[member] = call.params[member]
        kept["modifiedAt"] = call.now
        return updated("AddonUpdate")

    def delete_addon(self, call: Call) -> Document:
        addon = self._addon(call, call.params["clusterName"], call.params["addonName"])
        self._identities.unbind(addon["podIdentityAssociations"])
        del self.addons[(call.region, call.params["clusterName"], call.params["addonName"])]
        return {"addon": {**addon, "status": "DELETING"}}

    def list_addons(self, call: Call) -> Document:
        here = (call.region, call.params["clusterName"])
        return {"addons": [name for region, cluster, name in self.addons if (region, cluster) == here]}

    def _addon(self, call: Call, cluster: str, name: str) -> Document:
        self._control_planes.cluster(call.region, cluster)
        kept = self.addons.get((call.region, cluster, name))
        if kept is None:
            raise refuse("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster}")
        healthy = name not in NEED_NODES or self._control_planes.has_open_node((call.region, cluster))
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
