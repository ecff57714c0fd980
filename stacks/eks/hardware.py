"""Network, cluster, nodes, file systems and the way in: from settings and plan to the components' arguments."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.aws.accelerators import AcceleratorPoolArgs, ReservedCapacity
from components.aws.addons import AddonsArgs
from components.aws.cluster import ClusterArgs, PrivateEndpoint, PublicEndpoint
from components.aws.documents import partition_of
from components.aws.entrance import EntranceArgs
from components.aws.file_systems import ElasticFileSystemArgs, LustreArgs
from components.aws.identity import PodRoleArgs
from components.aws.network import Network, NetworkArgs
from components.aws.nodes import NodeRole, SystemNodesArgs
from planning.plan import Plan
from planning.settings.eks import (
    EksB300,
    FsxWeights,
)
from planning.settings.eks import PublicEndpoint as PublicSettings
from stacks.eks.names import GATEWAY_DRAIN_SECONDS, HYDRATION, NODE_PORT, WEIGHTS, has_started, known_block
from stacks.eks.weights import copy_namespace


def partition(settings: EksB300) -> str:
    """The partition of the region's ARNs."""
    return partition_of(settings.region)


def network(settings: EksB300) -> NetworkArgs:
    """The VPC."""
    return NetworkArgs(
        region=settings.region,
        cidr=settings.network.cidr,
        zones=settings.network.zones,
        cluster_name=settings.cluster.name,
    )


def cluster(settings: EksB300, *, net: Network, account: pulumi.Input[str]) -> ClusterArgs:
    """The control plane."""
    endpoint = settings.cluster.endpoint
    kind = PublicEndpoint if isinstance(endpoint, PublicSettings) else PrivateEndpoint
    return ClusterArgs(
        name=settings.cluster.name,
        region=settings.region,
        account=account,
        kubernetes_version=settings.cluster.version,
        vpc_id=net.vpc_id,
        subnets=tuple(net.private_subnets.values()),
        endpoint=kind(callers=endpoint.callers),
        administrators=settings.cluster.administrators,
        log_retention_days=settings.cluster.log_retention_days,
    )


def addons(settings: EksB300, *, cluster_name: pulumi.Input[str], names: Sequence[str]) -> AddonsArgs:
    """A group of add-ons. The CNI also enforces network policies."""
    return AddonsArgs(
        cluster_name=cluster_name,
        partition=partition_of(settings.region),
        names=names,
        versions=settings.cluster.addons,
        configuration={"vpc-cni": {"enableNetworkPolicy": "true"}},
    )


def system_nodes(
    settings: EksB300, *, net: Network, cluster_name: pulumi.Input[str], role: NodeRole
) -> SystemNodesArgs:
    """The CPU nodes."""
    nodes = settings.cluster.system_nodes
    return SystemNodesArgs(
        cluster_name=cluster_name,
        name=f"{settings.cluster.name}-system",
        role=role,
        subnets=tuple(net.private_subnets.values()),
        instance_type=nodes.instance_type,
        count=nodes.count,
        kubernetes_version=settings.cluster.version,
        release_version=settings.cluster.release_version,
        disk_gib=nodes.disk_gib,
    )


def accelerators(
    settings: EksB300,
    planned: Plan,
    *,
    net: Network,
    cluster_name: pulumi.Input[str],
    security_group: pulumi.Input[str],
    role: NodeRole,
) -> AcceleratorPoolArgs:
    """The pool on the capacity block."""
    block, schedule = known_block(planned)
    return AcceleratorPoolArgs(
        cluster_name=cluster_name,
        cluster_security_group=security_group,
        name=f"{settings.cluster.name}-accelerators",
        role=role,
        capacity=ReservedCapacity(
            reservation_id=block.reservation, raise_at=None if has_started(planned) else schedule.raise_at
        ),
        subnet=net.private_subnets[block.availability_zone],
        vpc_id=net.vpc_id,
        instance_type=planned.pool.machine,
        nodes=planned.pool.nodes,
        efa_cards=planned.pool.efa_cards,
        kubernetes_version=settings.cluster.version,
        release_version=settings.cluster.release_version,
        disk_gib=planned.pool.disk_gib,
    )


def lustre(
    settings: EksB300,
    weights: FsxWeights,
    planned: Plan,
    *,
    net: Network,
    nodes: pulumi.Input[str],
    bucket: pulumi.Input[str],
) -> LustreArgs:
    """FSx for Lustre in the block's zone."""
    block, _ = known_block(planned)
    return LustreArgs(
        vpc_id=net.vpc_id,
        subnet=net.private_subnets[block.availability_zone],
        clients=nodes,
        storage_gib=weights.storage_gib,
        mbps_per_tib=weights.mbps_per_tib,
        bucket=bucket,
        prefix=planned.weights.repo,
        path=f"/{planned.weights.repo}",
    )


def elastic_file_system(*, net: Network, nodes: pulumi.Input[str]) -> ElasticFileSystemArgs:
    """EFS with a mount target a zone."""
    return ElasticFileSystemArgs(vpc_id=net.vpc_id, subnets=net.private_subnets, clients=nodes)


def pod_role(
    settings: EksB300, *, account: str, cluster_name: pulumi.Input[str], policy: pulumi.Input[str]
) -> PodRoleArgs:
    """Rights of a service account that works on the weights."""
    return PodRoleArgs(
        cluster_name=cluster_name,
        partition=partition(settings),
        namespace=copy_namespace(settings) if account == HYDRATION else WEIGHTS,
        service_account=account,
        policy=policy,
    )


def entrance(
    settings: EksB300, *, net: Network, nodes: pulumi.Input[str], autoscaling_group: pulumi.Input[str]
) -> EntranceArgs:
    """The load balancer."""
    wanted = settings.gateway
    internal = wanted.exposure == "internal"
    subnets = net.private_subnets if internal else net.public_subnets
    return EntranceArgs(
        vpc_id=net.vpc_id,
        subnets=tuple(subnets.values()),
        internal=internal,
        callers=wanted.callers or (settings.network.cidr,),
        port=wanted.port,
        node_port=NODE_PORT,
        autoscaling_group=autoscaling_group,
        nodes=nodes,
        idle_seconds=wanted.idle_seconds,
        drain_seconds=GATEWAY_DRAIN_SECONDS,
        certificate_arn=wanted.certificate_arn,
    )
