"""The published recipes: images, commands, flags and variables, word for word and in their order."""

from __future__ import annotations

import json
from dataclasses import dataclass

from catalog.models import DSPARK_PREVIEW
from catalog.source import GUIDE, RECIPE, Source

Flags = tuple[tuple[str, str | None], ...]
"""Names without dashes and their values; None is a bare flag."""

SERVED_NAME = "{served_name}"
"""Stands for the name that requests carry; the recipe fills it in from its own platform."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One engine as its authors run it.

    image: with its digest where one is published. engine, release: whose flags these are, and the release that the flags
    were checked against. selector: CEL over a device's attributes, for GPUs that are claimed.
    """

    engine: str
    release: str
    image: str
    command: tuple[str, ...]
    flags: Flags
    env: tuple[tuple[str, str], ...]
    port: int
    selector: str
    source: Source


SGLANG_B300 = Recipe(
    engine="sglang",
    release="0.5.23",
    image="lmsysorg/sglang:dev-kimi-k31-pro@sha256:67fc77d1cbe67de27ca54d874c82757a4844743fea899ea7d0df547e30c2c391",
    command=("python3", "-m", "sglang.launch_server"),
    flags=(
        ("model-path", "moonshotai/Kimi-K3.1-Pro"),
        ("revision", "d9e99b0792a5e93b78ea9bea62a68167e36ddd9e"),
        ("served-model-name", SERVED_NAME),
        ("trust-remote-code", None),
        ("tp-size", "8"),
        ("dcp-size", "8"),
        ("dcp-comm-backend", "fi_a2a"),
        ("ep-size", "2"),
        ("context-length", "524288"),
        ("mem-fraction-static", "0.88"),
        ("max-running-requests", "48"),
        ("mamba-max-states-per-path", "4"),
        ("weight-loader-prefetch-checkpoints", None),
        ("reasoning-parser", "kimi_k3"),
        ("tool-call-parser", "kimi_k3"),
        ("enable-metrics", None),
        ("host", "0.0.0.0"),
        ("port", "8000"),
    ),
    env=(),
    port=8000,
    selector='device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].architecture == "Blackwell" '
    '&& device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("250Gi")) >= 0',
    source=RECIPE,
)

FORCED_PAGE_TOKENS = 64
"""Page size that the K3.1 build forces on CUDA (recipe); it also forces the KV dtype."""
FORCED_KV_DTYPE = "fp8_e4m3"

SGLANG_TPU = Recipe(
    engine="sglang",
    release="fork for Torch TPU; not in 0.5.23",
    image="docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu",
    command=("python3", "-m", "sglang.launch_server"),
    flags=(
        ("model-path", "/models/Kimi-K3.1-Pro"),
        ("served-model-name", SERVED_NAME),
        ("trust-remote-code", None),
        ("tp-size", "32"),
        ("ep-size", "8"),
        ("nnodes", "4"),
        ("node-rank", "$(LWS_WORKER_INDEX)"),
        ("dist-init-addr", "$(LWS_LEADER_ADDRESS):20000"),
        ("context-length", "491520"),
        ("kv-cache-dtype", "fp8_e4m3"),
        ("page-size", "128"),
        ("attention-backend", "pallas_tpu_mla_sparse"),
        ("enable-hierarchical-cache", None),
        ("hicache-ratio", "2"),
        ("hicache-io-backend", "raiden"),
        ("grammar-backend", "none"),
        ("reasoning-parser", "kimi_k3"),
        ("tool-call-parser", "kimi_k3"),
        ("enable-metrics", None),
        ("host", "0.0.0.0"),
        ("port", "8000"),
    ),
    env=(),
    port=8000,
    selector="",
    source=GUIDE,
)
"""The guide names these flags in its text; the manifest itself is not public, so order and ports are ours."""

SPECULATION = json.dumps(
    {
        "model": DSPARK_PREVIEW.repo,
        "num_speculative_tokens": DSPARK_PREVIEW.tokens,
        "method": DSPARK_PREVIEW.method,
        "draft_sample_method": "probabilistic",
    },
    separators=(",", ":"),
)
VLLM_IMAGE = "docker.io/vllm/vllm-openai:kimi-k31"
VLLM_ENV = (
    ("PYTHONHASHSEED", "42"),
    ("MOONCAKE_CONFIG_PATH", "/etc/mooncake/mooncake_config.json"),
    ("HF_HOME", "/models/hf-cache"),
)
HASH_SEED = "42"

VLLM_PREFILL = Recipe(
    engine="vllm",
    release="0.33.0",
    image=VLLM_IMAGE,
    command=("vllm", "serve", "/models/Kimi-K3.1-Pro"),
    flags=(
        ("served-model-name", SERVED_NAME),
        ("trust-remote-code", None),
        ("nnodes", "2"),
        ("node-rank", "$(LWS_WORKER_INDEX)"),
        ("master-addr", "$(LWS_LEADER_ADDRESS)"),
        ("tensor-parallel-size", "8"),
        ("enable-expert-parallel", None),
        ("enable-ep-weight-filter", None),
        ("enable-cumem-allocator", None),
        ("enable-prefix-caching", None),
        ("load-format", "fastsafetensors"),
        ("gpu-memory-utilization", "0.95"),
        ("kv-cache-dtype", "nvfp4_ds_mla"),
        ("language-model-only", None),
        ("max-num-seqs", "32"),
        ("speculative-config", SPECULATION),
        ("reasoning-parser", "kimi_k3"),
        ("enable-auto-tool-choice", None),
        ("tool-call-parser", "kimi_k3"),
        ("host", "0.0.0.0"),
        ("port", "8000"),
    ),
    env=VLLM_ENV,
    port=8000,
    selector="",
    source=GUIDE,
)

VLLM_DECODE = Recipe(
    engine="vllm",
    release="0.33.0",
    image=VLLM_IMAGE,
    command=("vllm", "serve", "/models/Kimi-K3.1-Pro"),
    flags=(
        ("served-model-name", SERVED_NAME),
        ("trust-remote-code", None),
        ("data-parallel-size", "16"),
        ("data-parallel-size-local", "4"),
        ("data-parallel-address", "$(LWS_LEADER_ADDRESS)"),
        ("data-parallel-multi-port-external-lb", None),
        ("data-parallel-supervisor-port", "8208"),
        ("enable-expert-parallel", None),
        ("enable-ep-weight-filter", None),
        ("enable-cumem-allocator", None),
        ("load-format", "fastsafetensors"),
        ("gpu-memory-utilization", "0.95"),
        ("kv-cache-dtype", "nvfp4_ds_mla"),
        ("language-model-only", None),
        ("max-num-seqs", "32"),
        ("max-num-batched-tokens", "512"),
        ("max-cudagraph-capture-size", "512"),
        ("no-enable-prefix-caching", None),
        ("use-replayssm", None),
        ("speculative-config", SPECULATION),
        ("reasoning-parser", "kimi_k3"),
        ("enable-auto-tool-choice", None),
        ("tool-call-parser", "kimi_k3"),
        ("host", "0.0.0.0"),
        ("port", "8200"),
    ),
    env=VLLM_ENV,
    port=8200,
    selector="",
    source=GUIDE,
)
"""The guide also quantises the projections to MXFP8; its JSON for that is not public."""

DECODE_FRONT_PORT = 8000
RENDER_PORT = 8089
EVENTS_PORT = 5557
NIXL_PORT = 5600
SEGMENT_GB = 160
"""Mooncake segment of each rank, in the engine's GB, which are powers of two."""
DONOR_GB = 500
LOCAL_BUFFER_GIB = 4
"""Default of the engine's Mooncake configuration (vllm 0.33.0)."""
