"""Figures that someone measured and nobody can derive: each with its hardware, image and source."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import GUIDE, RECIPE, Source
from catalog.units import GIB


@dataclass(frozen=True, kw_only=True)
class Measured:
    """value in `unit`, on `hardware`, with `image`."""

    value: int
    unit: str
    what: str
    hardware: str
    image: str
    source: Source


SGLANG_B300_POOL = Measured(
    value=8_600_000,
    unit="tokens",
    what="KV pool of one engine: TP8, DCP8, memory fraction 0.88, 48 running requests",
    hardware="8 × B300 (p6-b300.48xlarge)",
    image="lmsysorg/sglang:dev-kimi-k31-pro@sha256:67fc77d1cbe67de27ca54d874c82757a4844743fea899ea7d0df547e30c2c391",
    source=RECIPE,
)
"""The recipe says about 8.6M."""

TPU_HBM_POOL = Measured(
    value=532_352,
    unit="tokens",
    what="HBM KV pool of one engine: TP32, EP8, context 491,520, page 128",
    hardware="tpu7x 2x2x4 (16 chips, 32 TensorCores)",
    image="docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu",
    source=GUIDE,
)
"""What caps it there is not known: the memory that is left would hold six times as much."""

TPU_LOAD_PEAK = Measured(
    value=660 * GIB,
    unit="bytes",
    what="peak of a pod's host memory while it loads the weights (8 ranks)",
    hardware="tpu7x-standard-4t",
    image="docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu",
    source=GUIDE,
)

TPU_PREFILL_RATE = Measured(
    value=4209,
    unit="tokens/s",
    what="peakPrefillThroughput of the router's affinity filter",
    hardware="tpu7x 2x2x4",
    image="docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu",
    source=GUIDE,
)

TPU_CONTEXT_LIMIT = Measured(
    value=496_000,
    unit="tokens",
    what="longest context that the batch-64 decode kernel's SMEM allows",
    hardware="tpu7x 2x2x4",
    image="docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu",
    source=GUIDE,
)
