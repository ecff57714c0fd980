"""Names, labels, ports and sizes that more than one part of an EKS environment uses."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.artifacts import Image
from components.aws.accelerators import POOL, POOL_LABEL, TAINT
from components.platform.namespaces import NamespaceArgs
from planning.block import CapacityBlock, Schedule
from planning.plan import Plan
from planning.settings.eks import EksB300
from planning.workload import UNIFIED_CHECKS

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


def mirrored(reference: str, settings: EksB300) -> str:
    """An image that is not in the catalogue of artifacts, from the mirror if there is one."""
    mirror = settings.artifacts.mirror
    return f"{mirror.rstrip('/')}/{reference}" if mirror else reference


def has_started(planned: Plan) -> bool:
    """Whether the block gives instances now; before that, nothing that needs its nodes is waited for."""
    block, _ = known_block(planned)
    return block.state == "active"


def known_block(planned: Plan) -> tuple[CapacityBlock, Schedule]:
    """The block and its calendar; the stack always looks the block up before it plans."""
    assert planned.block is not None
    assert planned.schedule is not None
    return planned.block, planned.schedule


def calendar(planned: Plan) -> Mapping[str, str]:
    """The block's dates for the outputs."""
    block, schedule = known_block(planned)
    dates = {"starts": block.start, "drain": schedule.drain_at, "nodes go": schedule.scale_down_at, "ends": block.end}
    return {
        "id": block.reservation,
        "state": block.state,
        **{what: f"{at:%Y-%m-%d %H:%M} UTC" for what, at in dates.items()},
    }
