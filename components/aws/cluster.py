"""The EKS control plane, its access, and what nodes need before the first of them joins."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from components.aws.documents import logs_may_use, partition_of
from components.aws.identity import ServiceRole

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""All that EKS can send to CloudWatch Logs."""

ACCESS_POLICY = "AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class PrivateEndpoint:
    """The API server answers inside the VPC only. callers: CIDRs of the connected networks that may call it."""

    callers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PublicEndpoint:
    """The API server also answers from the internet, to these CIDRs only; nodes keep the private way."""

    callers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """What a control plane needs to know.

    subnets: private subnets in two zones or more, none of them in a Local Zone. endpoint: who reaches the API server.
    administrators: IAM principals with full rights beside the one that creates the cluster.
    log_retention_days: how long control-plane logs are kept.
    """

    name: str
    region: str
    account: pulumi.Input[str]
    kubernetes_version: str
    vpc_id: pulumi.Input[str]
    subnets: tuple[pulumi.Input[str], ...]
    endpoint: PrivateEndpoint | PublicEndpoint
    administrators: tuple[str, ...] = field(default=())
    log_retention_days: int = 90


class Cluster(pulumi.ComponentResource):
    """An EKS cluster made of plain resources: access entries only, secrets under a key of ours, all logs kept.

    cluster_name, arn, endpoint, certificate_authority: of the API server. security_group_id: the group that
    nodes and control plane share. kubeconfig: for an `aws eks get-token` client.
    """

    def __init__(self, name: str, *, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:Cluster", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        partition = partition_of(args.region)
        role = ServiceRole(
            f"{name}-control-plane",
            service="eks.amazonaws.com",
            policies=("AmazonEKSClusterPolicy",),
            partition=partition,
            tag_session=True,
            opts=child,
        )
        key = aws.kms.Key(
            f"{name}-secrets",
            description=f"Kubernetes secrets and control-plane logs of {args.name}",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=pulumi.Output.from_input(args.account).apply(
                lambda account: logs_may_use(account=account, region=args.region, partition=partition)
            ),
            opts=child,
        )
        # EKS would make this group by itself, without an end to the retention.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/eks/{args.name}/cluster",
            retention_in_days=args.log_retention_days,
            kms_key_id=key.arn,
            opts=child,
        )
        public = args.endpoint.callers if isinstance(args.endpoint, PublicEndpoint) else ()
        cluster = aws.eks.Cluster(
            name,
            name=args.name,
            version=args.kubernetes_version,
            role_arn=role.arn,
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
            bootstrap_self_managed_addons=False,
            enabled_cluster_log_types=list(LOG_TYPES),
            encryption_config={"provider": {"key_arn": key.arn}, "resources": ["secrets"]},
            upgrade_policy={"support_type": "STANDARD"},
            vpc_config={
                "subnet_ids": list(args.subnets),
                "endpoint_private_access": True,
                "endpoint_public_access": bool(public),
                **({"public_access_cidrs": list(public)} if public else {}),
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*role.attached, logs]),
        )
        self.security_group_id: pulumi.Output[str] = cluster.vpc_config.cluster_security_group_id
        if isinstance(args.endpoint, PrivateEndpoint):
            admit(self, name, security_group_id=self.security_group_id, callers=args.endpoint.callers)
        self._entries(name, cluster=cluster, args=args, partition=partition)
        self.eks = cluster
        self.cluster_name: pulumi.Output[str] = cluster.name
        self.arn: pulumi.Output[str] = cluster.arn
        self.endpoint: pulumi.Output[str] = cluster.endpoint
        self.certificate_authority: pulumi.Output[str] = cluster.certificate_authority.data
        self.kubeconfig: pulumi.Output[str] = pulumi.Output.all(
            self.endpoint, self.certificate_authority, cluster.name
        ).apply(
            lambda known: kubeconfig(
                endpoint=known[0], certificate_authority=known[1], cluster_name=known[2], region=args.region
            )
        )
        self.register_outputs(
            {"clusterName": self.cluster_name, "endpoint": self.endpoint, "securityGroupId": self.security_group_id}
        )

    def _entries(self, name: str, *, cluster: aws.eks.Cluster, args: ClusterArgs, partition: str) -> None:
        for principal in args.administrators:
            who = f"{name}-admin-{principal.rsplit('/', 1)[-1]}"
            entry = aws.eks.AccessEntry(
                who, cluster_name=cluster.name, principal_arn=principal, opts=pulumi.ResourceOptions(parent=self)
            )
            aws.eks.AccessPolicyAssociation(
                who,
                cluster_name=cluster.name,
                principal_arn=entry.principal_arn,
                policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{ACCESS_POLICY}",
                access_scope={"type": "cluster"},
                opts=pulumi.ResourceOptions(parent=self),
            )


def admit(
    parent: pulumi.Resource, name: str, *, security_group_id: pulumi.Input[str], callers: tuple[str, ...]
) -> None:
    """Lets connected networks reach a private API server."""
    for cidr in callers:
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-api-from-{cidr.replace('/', '-')}",
            security_group_id=security_group_id,
            description="Kubernetes API from a connected network",
            cidr_ipv4=cidr,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            opts=pulumi.ResourceOptions(parent=parent),
        )


def kubeconfig(*, endpoint: str, certificate_authority: str, cluster_name: str, region: str) -> str:
    """A kubeconfig that asks `aws` for a token: it holds no credential, so it may be stored in state."""
    token = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["--region", region, "eks", "get-token", "--cluster-name", cluster_name, "--output", "json"],
        "interactiveMode": "Never",
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": cluster_name,
                    "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority},
                }
            ],
            "users": [{"name": cluster_name, "user": {"exec": token}}],
            "contexts": [{"name": cluster_name, "context": {"cluster": cluster_name, "user": cluster_name}}],
            "current-context": cluster_name,
        },
        sort_keys=True,
    )
