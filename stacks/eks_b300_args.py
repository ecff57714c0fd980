"""From the settings and the plan of an EKS environment to the arguments of its components. One function a component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from catalog.artifacts import (
    DCGM_EXPORTER,
    ENDPOINT_PICKER,
    ENVOY,
    LLM_D_PICKER,
    NVIDIA_DEVICE_PLUGIN,
    NVIDIA_DEVICE_PLUGIN_CHART,
    NVIDIA_DRA_DRIVER,
    NVIDIA_DRA_DRIVER_CHART,
    PROMETHEUS,
    PYTHON,
    Image,
)
from components.aws.accelerators import POOL, POOL_LABEL, TAINT, AcceleratorPoolArgs, ReservedCapacity
from components.aws.addons import AddonsArgs
from components.aws.cluster import ClusterArgs, PrivateEndpoint, PublicEndpoint
from components.aws.documents import partition_of
from components.aws.entrance import EntranceArgs
from components.aws.file_systems import ElasticFileSystem, ElasticFileSystemArgs, Lustre, LustreArgs
from components.aws.identity import PodRoleArgs
from components.aws.monitoring import ManagedPrometheusArgs
from components.aws.network import Network, NetworkArgs
from components.aws.nodes import NodeRole, SystemNodesArgs
from components.aws.user_data import INSTANCE_STORE_MOUNT
from components.platform.gpu import DCGM_LABELS, DCGM_PORT, DevicePlugin, DraDriver, GpuSoftwareArgs
from components.platform.gpu import NAMESPACE as GPU_NAMESPACE
from components.platform.monitoring import (
    Alert,
    Target,
    block_alerts,
    gpu_alerts,
    rule_file,
    scrape_configuration,
    sglang_alerts,
)
from components.platform.namespaces import NamespaceArgs
from components.platform.prometheus import PrometheusArgs
from components.platform.sources import chart_source
from components.serving import gateway_config
from components.serving.checks.job import CheckJobArgs, program_text
from components.serving.gateway import LABELS as GATEWAY_LABELS
from components.serving.gateway import GatewayArgs
from components.serving.router import RouterArgs
from components.serving.routers import EndpointPicker
from components.serving.sglang import NodeDisk, SglangArgs, SharedVolume, Weights
from components.weights.gate import gate_container
from components.weights.node_copy import NodeCopyArgs
from components.weights.program import Installed, Limits, SecretKey, Store
from components.weights.staging.manifest import Source
from components.weights.staging_job import StagingJobArgs
from components.weights.static_volume import StaticVolumeArgs
from components.weights.volume_job import VolumeJobArgs
from planning.block import CapacityBlock, Schedule
from planning.plan import Plan
from planning.settings.eks import (
    ApiKeys,
    EksB300,
    FsxWeights,
    Jwt,
    ManagedPrometheusMonitoring,
    NvmeWeights,
    PrometheusMonitoring,
)
from planning.settings.eks import PublicEndpoint as PublicSettings
from planning.workload import UNIFIED_CHECKS

__all__ = ["DCGM_LABELS", "DCGM_PORT", "GPU_NAMESPACE"]

SERVING = "serving"
"""Namespace of engines, router and gateway."""
WEIGHTS = "weights"
"""Namespace of staging and hydration."""
MONITORING = "monitoring"
STAGING, HYDRATION = "staging", "hydration"
"""Service accounts of what writes to the bucket and of what reads from it."""
STAGING_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": STAGING}
HYDRATION_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": HYDRATION}
CLAIM = "weights"
NODE_WEIGHTS = "weights"
"""Folder of the weights on a node's array."""

NAMESPACES = (
    NamespaceArgs(name=SERVING, profile="privileged"),
    NamespaceArgs(name=WEIGHTS, profile="privileged"),
    NamespaceArgs(name=MONITORING),
)
"""Engines and the copy onto a node mount the node's disks."""

ACCELERATORS: Mapping[str, str] = {POOL_LABEL: POOL}
SYSTEM: Mapping[str, str] = {POOL_LABEL: "system"}

GPU_TOLERATION: Mapping[str, str] = {"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}
GPU_MIB = 250 * 1024
"""Memory that every GPU must have: the 250Gi of the recipe's selector."""
SLOWEST_DISK_MBPS = 1000
"""What a root volume gives (EKS user guide, fast model loading): an array of eight NVMe disks that is no faster is broken."""

SMOKE_CHECKS = (*UNIFIED_CHECKS, "anthropic", "prefix-reuse")
"""The plan's checks, the other interface of the same model, and the router's reason to exist."""

SMOKE_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "smoke"}
ROUTER_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "router"}
PROMETHEUS_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "prometheus"}
ROUTER_PORT = 8081
ROUTER_CPU_MILLICORES, ROUTER_MEMORY_MIB = 4000, 8192
"""Of picker and Envoy each: prompts of 100,000 tokens take half a core to a core a request a second to match (llm-d
docs/operations.md@ebab6879)."""

NODE_PORT = 30080
GATEWAY_DRAIN_SECONDS = 300
ENGINE_JOB = "engine"


def image(row: Image, settings: EksB300) -> str:
    """The reference to pull."""
    return row.at(settings.artifacts.mirror)


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


def has_started(planned: Plan) -> bool:
    """Whether the block gives instances now; before that, nothing that needs its nodes is waited for."""
    block, _ = known_block(planned)
    return block.state == "active"


def known_block(planned: Plan) -> tuple[CapacityBlock, Schedule]:
    """The block and its calendar; the stack always looks the block up before it plans."""
    assert planned.block is not None
    assert planned.schedule is not None
    return planned.block, planned.schedule


def gpu_software(settings: EksB300) -> GpuSoftwareArgs:
    """What runs on accelerator nodes beside the engines."""
    kind, row, source = (
        (DraDriver, NVIDIA_DRA_DRIVER, NVIDIA_DRA_DRIVER_CHART)
        if settings.gpu_allocation == "dra"
        else (DevicePlugin, NVIDIA_DEVICE_PLUGIN, NVIDIA_DEVICE_PLUGIN_CHART)
    )
    repository, _, tag = image(row, settings).rpartition(":")
    return GpuSoftwareArgs(
        allocator=kind(
            source=chart_source(source, bundle=settings.artifacts.bundle), image_repository=repository, image_tag=tag
        ),
        exporter_image=image(DCGM_EXPORTER, settings),
        node_selector=ACCELERATORS,
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


def weights(planned: Plan, *, store: NodeDisk | SharedVolume) -> Weights:
    """The verified copy as the engine sees it."""
    inside = f"{NODE_WEIGHTS}/" if isinstance(store, NodeDisk) else ""
    return Weights(
        store=store,
        directory=f"{inside}{planned.weights.prefix}",
        repo=planned.weights.repo,
        revision=planned.weights.revision,
    )


def partition(settings: EksB300) -> str:
    """The partition of the region's ARNs."""
    return partition_of(settings.region)


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


def sources(planned: Plan) -> tuple[Source, ...]:
    """What is staged."""
    return (Source(repo=planned.weights.repo, revision=planned.weights.revision),)


def runtime(settings: EksB300) -> Installed:
    """How the staging program gets its packages: a plain Python image and an install that checks hashes."""
    return Installed(image=image(PYTHON, settings))


def _store(settings: EksB300, url: pulumi.Input[str]) -> Store:
    return Store(url=url, environment={"AWS_REGION": settings.region})


def staging(settings: EksB300, planned: Plan, *, bucket: pulumi.Input[str]) -> StagingJobArgs:
    """Hub → bucket, on CPU nodes."""
    token = settings.weights.staging.token
    return StagingJobArgs(
        namespace=WEIGHTS,
        labels=STAGING_LABELS,
        sources=sources(planned),
        store=_store(settings, pulumi.Output.format("s3://{0}", bucket)),
        runtime=runtime(settings),
        service_account=STAGING,
        token=SecretKey(name=token.name, key=token.key) if token else None,
        limits=Limits(parallel_files=planned.weights.parallel_files, connections=2 * planned.weights.parallel_files),
        seconds=planned.weights.stage_seconds,
        node_selector=SYSTEM,
    )


def node_copy(settings: EksB300, planned: Plan, *, url: pulumi.Input[str]) -> NodeCopyArgs:
    """Bucket → every accelerator node's array."""
    return NodeCopyArgs(
        namespace=WEIGHTS,
        labels=HYDRATION_LABELS,
        sources=sources(planned),
        store=_store(settings, url),
        runtime=runtime(settings),
        service_account=HYDRATION,
        disk=INSTANCE_STORE_MOUNT,
        folder=NODE_WEIGHTS,
        seconds=planned.weights.hydrate_seconds if has_started(planned) else None,
        node_selector=ACCELERATORS,
        tolerations=(GPU_TOLERATION,),
    )


def lustre_volume(wanted: FsxWeights, system: Lustre) -> StaticVolumeArgs:
    """FSx for Lustre as a claim."""
    return StaticVolumeArgs(
        namespace=SERVING,
        claim=CLAIM,
        driver="fsx.csi.aws.com",
        handle=system.file_system_id,
        attributes={"dnsname": system.dns_name, "mountname": system.mount_name},
        mount_options=("flock",),
        gib=wanted.storage_gib,
    )


def elastic_volume(system: ElasticFileSystem, planned: Plan) -> StaticVolumeArgs:
    """EFS as a claim; the file system has no size, the claim must name one."""
    return StaticVolumeArgs(
        namespace=SERVING,
        claim=CLAIM,
        driver="efs.csi.aws.com",
        handle=system.file_system_id,
        gib=-(-planned.weights.checkpoint_bytes // 2**30),
    )


def copy_namespace(settings: EksB300) -> str:
    """Where the copy to the engines' store runs: beside the claim that it fills, or apart when it fills nodes' disks."""
    return WEIGHTS if isinstance(settings.weights, NvmeWeights) else SERVING


def volume_job(settings: EksB300, planned: Plan, *, url: pulumi.Input[str]) -> VolumeJobArgs:
    """Fills EFS from the bucket; reads every byte of FSx once, which brings it in from the bucket and verifies it."""
    linked = isinstance(settings.weights, FsxWeights)
    return VolumeJobArgs(
        namespace=SERVING,
        labels=HYDRATION_LABELS,
        sources=sources(planned),
        store=_store(settings, url),
        runtime=runtime(settings),
        claim=CLAIM,
        work="verify" if linked else "hydrate",
        service_account=None if linked else HYDRATION,
        seconds=planned.weights.hydrate_seconds,
        node_selector=SYSTEM,
    )


def engine(settings: EksB300, planned: Plan, *, store: NodeDisk | SharedVolume) -> SglangArgs:
    """The engine deployment."""
    work = planned.engine
    pulled = mirrored(work.image, settings)
    return SglangArgs(
        workload=work,
        namespace=SERVING,
        image=pulled,
        node_selector=_gpu_nodes(settings, planned),
        node_disk=INSTANCE_STORE_MOUNT,
        weights=weights(planned, store=store),
        gates=(
            gate_container(
                image=pulled,
                sources=sources(planned),
                volume="weights",
                folder=NODE_WEIGHTS if isinstance(store, NodeDisk) else "",
                seconds=planned.weights.hydrate_seconds,
            ),
            node_gate(planned, image=pulled, store=store),
        ),
        nodes_exist=has_started(planned),
    )


def _gpu_nodes(settings: EksB300, planned: Plan) -> Mapping[str, str]:
    """The device plugin knows a number only: the instance type keeps other GPUs out."""
    if settings.gpu_allocation == "dra":
        return ACCELERATORS
    return {**ACCELERATORS, "node.kubernetes.io/instance-type": planned.pool.machine}


def node_gate(planned: Plan, *, image: str, store: NodeDisk | SharedVolume) -> dict[str, Any]:
    """An init container with the engine's devices that looks at GPUs and disk."""
    claim = planned.engine.claim
    on_node = isinstance(store, NodeDisk)
    environment = {
        "GPUS": str(claim.count),
        "GPU_MIB": str(GPU_MIB),
        "DISK": "/node" if on_node else "",
        "DEVICE": "/dev/md",
        "READ_MBPS": str(SLOWEST_DISK_MBPS if on_node else 0),
        "WEIGHTS": f"/node/{NODE_WEIGHTS}/{planned.weights.prefix}",
    }
    devices = {"claims": [{"name": "gpus"}]} if claim.selector else {"limits": {"nvidia.com/gpu": str(claim.count)}}
    return {
        "name": "node",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", program_text("node")],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": devices,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "weights", "mountPath": "/node", "readOnly": True}],
    }


def smoke(settings: EksB300, planned: Plan, *, base_url: pulumi.Input[str], engines: str) -> CheckJobArgs:
    """The questions. engines: Service of the engines, whose counters show whether a prefix was reused."""
    work = planned.engine
    return CheckJobArgs(
        namespace=SERVING,
        program="smoke",
        image=image(PYTHON, settings),
        environment={
            "BASE_URL": base_url,
            "MODEL": planned.smoke.model,
            "CHECKS": ",".join(SMOKE_CHECKS),
            "OVER_LONG_TOKENS": str(planned.smoke.over_long_tokens),
            "METRICS": f"{engines}.{SERVING}.svc.cluster.local:{work.port}",
        },
        seconds=planned.smoke.timeout_seconds,
        labels=SMOKE_LABELS,
        node_selector=SYSTEM,
        changes_with=(work.image, *work.arguments, str(work.group.replicas)),
    )


def calendar(planned: Plan) -> Mapping[str, str]:
    """The block's dates for the outputs."""
    block, schedule = known_block(planned)
    dates = {"starts": block.start, "drain": schedule.drain_at, "nodes go": schedule.scale_down_at, "ends": block.end}
    return {
        "id": block.reservation,
        "state": block.state,
        **{what: f"{at:%Y-%m-%d %H:%M} UTC" for what, at in dates.items()},
    }


def mirrored(reference: str, settings: EksB300) -> str:
    """An image that is not in the catalogue of artifacts, from the mirror if there is one."""
    mirror = settings.artifacts.mirror
    return f"{mirror.rstrip('/')}/{reference}" if mirror else reference


def router(settings: EksB300, planned: Plan) -> RouterArgs:
    """The endpoint picker in front of the engines."""
    row = LLM_D_PICKER if planned.router.flavour == "llm-d" else ENDPOINT_PICKER
    picker = EndpointPicker(plan=planned.router, picker_image=image(row, settings), envoy_image=image(ENVOY, settings))
    return RouterArgs(
        namespace=SERVING,
        backend=picker,
        labels=dict(ROUTER_LABELS),
        port=ROUTER_PORT,
        cpu_millicores=ROUTER_CPU_MILLICORES,
        memory_mib=ROUTER_MEMORY_MIB,
        grace_seconds=planned.engine.grace_seconds,
        ready_seconds=planned.startup.limits.router_ready_seconds,
    )


def gateway(settings: EksB300, *, upstream: str) -> GatewayArgs:
    """The gateway's Envoy. upstream: name of the router's Service."""
    return GatewayArgs(
        namespace=SERVING,
        upstream_host=f"{upstream}.{SERVING}.svc.cluster.local",
        upstream_port=ROUTER_PORT,
        image=image(ENVOY, settings),
        auth=_auth(settings),
        idle_seconds=settings.gateway.idle_seconds,
        drain_seconds=GATEWAY_DRAIN_SECONDS,
        node_port=NODE_PORT,
        node_selector=SYSTEM,
    )


def _auth(settings: EksB300) -> gateway_config.Auth:
    wanted = settings.gateway.auth
    if isinstance(wanted, ApiKeys):
        return gateway_config.ApiKeys(secret=wanted.secret.name, key=wanted.secret.key)
    if isinstance(wanted, Jwt):
        return gateway_config.Jwt(issuer=wanted.issuer, audiences=wanted.audiences, jwks_uri=wanted.jwks_uri)
    return gateway_config.NoAuth()


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
        certificate_arn=wanted.certificate_arn,
    )


def targets(planned: Plan) -> tuple[Target, ...]:
    """What is scraped."""
    return (
        Target(job=ENGINE_JOB, namespace=SERVING, labels=planned.router.match_labels, port="http"),
        Target(job="gateway", namespace=SERVING, labels=GATEWAY_LABELS, port="status", path="/stats/prometheus"),
        Target(job="router", namespace=SERVING, labels=ROUTER_LABELS, port="metrics"),
        Target(job="gpu", namespace=GPU_NAMESPACE, labels=DCGM_LABELS, port="metrics"),
    )


def alerts(planned: Plan) -> Mapping[str, Sequence[Alert]]:
    """Alert rules by group."""
    block, schedule = known_block(planned)
    running = int(
        next(flag.partition("=")[2] for flag in planned.engine.arguments if flag.startswith("--max-running-requests="))
    )
    return {
        "engine": sglang_alerts(
            job=ENGINE_JOB, running_limit=running, startup_seconds=planned.startup.limits.startup_seconds
        ),
        "gpu": gpu_alerts(),
        "capacity-block": block_alerts(ends_at=block.end, drain_at=schedule.drain_at),
    }


def prometheus(settings: EksB300, monitoring: PrometheusMonitoring, planned: Plan) -> PrometheusArgs:
    """Prometheus in the cluster."""
    return PrometheusArgs(
        namespace=MONITORING,
        image=image(PROMETHEUS, settings),
        scrape_configuration=scrape_configuration(targets(planned)),
        rules={f"{group}.rules.yaml": rule_file(group, rules) for group, rules in alerts(planned).items()},
        namespaces=(SERVING, GPU_NAMESPACE),
        provisioner="ebs.csi.aws.com",
        storage_gib=monitoring.storage_gib,
        retention_days=monitoring.retention_days,
        node_selector=SYSTEM,
    )


def managed_prometheus(
    settings: EksB300,
    monitoring: ManagedPrometheusMonitoring,
    planned: Plan,
    *,
    net: Network,
    cluster_arn: pulumi.Input[str],
    security_group: pulumi.Input[str],
) -> ManagedPrometheusArgs:
    """Amazon Managed Service for Prometheus."""
    return ManagedPrometheusArgs(
        cluster_name=settings.cluster.name,
        cluster_arn=cluster_arn,
        subnets=tuple(net.private_subnets.values()),
        security_group=security_group,
        scrape_configuration=scrape_configuration(targets(planned)),
        rules={group: rule_file(group, rules) for group, rules in alerts(planned).items()},
        region=settings.region,
        alert_topic=monitoring.alert_topic,
    )
