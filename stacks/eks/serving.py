"""GPU software, engines, router, gateway and the smoke check: from settings and plan to the components' arguments."""

from __future__ import annotations

from collections.abc import Mapping
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
    PYTHON,
)
from components.aws.user_data import INSTANCE_STORE_MOUNT
from components.platform.gpu import DevicePlugin, DraDriver, GpuSoftwareArgs
from components.platform.sources import chart_source
from components.serving import gateway_config
from components.serving.checks.job import CheckJobArgs, program_text
from components.serving.gateway import GatewayArgs
from components.serving.router import RouterArgs
from components.serving.routers import EndpointPicker
from components.serving.sglang import NodeDisk, SglangArgs, SharedVolume
from components.weights.gate import gate_container
from planning.plan import Plan
from planning.settings.eks import (
    ApiKeys,
    EksB300,
    Jwt,
)
from stacks.eks.names import (
    ACCELERATORS,
    GATEWAY_DRAIN_SECONDS,
    GPU_MIB,
    NODE_PORT,
    NODE_WEIGHTS,
    ROUTER_CPU_MILLICORES,
    ROUTER_LABELS,
    ROUTER_MEMORY_MIB,
    ROUTER_PORT,
    SERVING,
    SLOWEST_DISK_MBPS,
    SMOKE_CHECKS,
    SMOKE_LABELS,
    SYSTEM,
    has_started,
    image,
    mirrored,
)
from stacks.eks.weights import mounted, sources


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
        weights=mounted(planned, store=store),
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
        # It runs before the engine and never beside it: its share of the node costs the engine nothing.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, **devices},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "weights", "mountPath": "/node", "readOnly": True}],
    }


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
