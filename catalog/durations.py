"""How long steps take, as ranges in seconds. Where nobody says, it is an assumption and the report shows it as one."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import ASSUMED, Source

MINUTE = 60


@dataclass(frozen=True, kw_only=True)
class Duration:
    """Seconds, fast and slow end."""

    fast: int
    slow: int
    source: Source


EKS_CLUSTER = Duration(fast=12 * MINUTE, slow=25 * MINUTE, source=ASSUMED)
"""VPC, control plane, add-ons and the system nodes."""

PLATFORM = Duration(fast=3 * MINUTE, slow=10 * MINUTE, source=ASSUMED)
"""Charts and controllers until they are ready."""

EKS_ACCELERATOR_NODE = Duration(fast=5 * MINUTE, slow=20 * MINUTE, source=ASSUMED)
"""From an active block to a node that is Ready with its devices published."""

GKE_CLUSTER = Duration(fast=8 * MINUTE, slow=20 * MINUTE, source=ASSUMED)

GKE_ACCELERATOR_POOL = Duration(
    fast=15 * MINUTE,
    slow=60 * MINUTE,
    source=Source(
        where="public operator notes on GB300 at GKE: 15–30 min, up to 60", date="2026-07", kind="field note"
    ),
)

COMPILE_FIRST = Duration(
    fast=10 * MINUTE,
    slow=75 * MINUTE,
    source=Source(
        where="user notes: first start of a 1.5 TB MoE on sm_103 60–75 min (JIT, ptxas, autotune), later starts cached",
        date="2026-09",
        kind="field note",
    ),
)
"""Kernel compilation, autotuning and graph capture when nothing is cached."""

COMPILE_CACHED = Duration(fast=2 * MINUTE, slow=10 * MINUTE, source=ASSUMED)
"""The same with the caches of an earlier start of the same image."""

IMAGE_PULL = Duration(fast=2 * MINUTE, slow=10 * MINUTE, source=ASSUMED)

SMOKE = Duration(fast=30, slow=5 * MINUTE, source=ASSUMED)

COMPILE_TPU = Duration(fast=10 * MINUTE, slow=60 * MINUTE, source=ASSUMED)
"""The same on TPU; nobody publishes it."""
