"""EKS add-ons, each with the least rights it can do with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.identity import PodRole, PodRoleArgs

BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""DaemonSets that a node needs to become ready; they are healthy on a cluster without nodes."""

AFTER_NODES = ("coredns", "aws-ebs-csi-driver", "eks-node-monitoring-agent")
"""They have Deployments or need the network: without an untainted node CoreDNS would stay degraded and `up` would wait for it."""

NAMESPACE = "kube-system"


@dataclass(frozen=True, kw_only=True)
class _Rights:
    service_account: str
    policy: str


RIGHTS: Mapping[str, _Rights] = {
    "vpc-cni": _Rights(service_account="aws-node", policy="AmazonEKS_CNI_Policy"),
    "aws-ebs-csi-driver": _Rights(service_account="ebs-csi-controller-sa", policy="AmazonEBSCSIDriverPolicy"),
    "aws-efs-csi-driver": _Rights(service_account="efs-csi-controller-sa", policy="AmazonEFSCSIDriverPolicy"),
}
"""Add-ons that call AWS. The FSx driver is not among them: it only mounts a file system that the program makes."""


@dataclass(frozen=True, kw_only=True)
class AddonsArgs:
    """names: in the order of their creation. versions: pinned ones; EKS takes its default for the rest and keeps it.
    configuration: values by add-on name, as the add-on's own schema has them.
    """

    cluster_name: pulumi.Input[str]
    partition: str
    names: Sequence[str]
    versions: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Addons(pulumi.ComponentResource):
    """A group of add-ons. addons: the resources by name; what needs one depends on it."""

    def __init__(self, name: str, *, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:Addons", name, {}, opts)
        self.addons: dict[str, aws.eks.Addon] = {addon: self._addon(name, addon, args=args) for addon in args.names}
        self.register_outputs({})

    def _addon(self, name: str, addon: str, *, args: AddonsArgs) -> aws.eks.Addon:
        rights = RIGHTS.get(addon)
        associations: list[dict[str, Any]] = []
        if rights:
            role = PodRole(
                f"{name}-{addon}",
                args=PodRoleArgs(
                    cluster_name=args.cluster_name,
                    partition=args.partition,
                    namespace=NAMESPACE,
                    service_account=rights.service_account,
                    managed=(rights.policy,),
                    associate=False,
                ),
                opts=pulumi.ResourceOptions(parent=self),
            )
            associations.append({"role_arn": role.arn, "service_account": rights.service_account})
        values = args.configuration.get(addon)
        return aws.eks.Addon(
            f"{name}-{addon}",
            cluster_name=args.cluster_name,
            addon_name=addon,
            addon_version=args.versions.get(addon),
            configuration_values=json.dumps(values, sort_keys=True) if values else None,
            pod_identity_associations=associations or None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            opts=pulumi.ResourceOptions(parent=self, depends_on=role.ready if rights else []),
        )
