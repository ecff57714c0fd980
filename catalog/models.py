"""The model as its dimensions: everything about memory is computed from these."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import GUIDE, RECIPE, Source


@dataclass(frozen=True, kw_only=True)
class Moe:
    """Mixture of experts: `layers` layers of `experts` routed experts in a latent space, and shared ones at full width."""

    layers: int
    experts: int
    active_experts: int
    latent: int
    intermediate: int
    shared_experts: int
    expert_bits: int
    scale_bits: int
    scale_group: int


@dataclass(frozen=True, kw_only=True)
class Mla:
    """Multi-head latent attention: what one token leaves in the cache is `kv_rank + rope` values a layer."""

    layers: int
    heads: int
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, kw_only=True)
class Indexer:
    """The indexer of sparse attention, one on each MLA layer; it caches one key of `head` values a token."""

    heads: int
    head: int
    top_k: int


@dataclass(frozen=True, kw_only=True)
class Kda:
    """Kimi Delta Attention: a state of `heads × head × head` a sequence and layer, and the last inputs of its convolutions."""

    layers: int
    heads: int
    head: int
    kernel: int
    convolutions: int


@dataclass(frozen=True, kw_only=True)
class Model:
    """A served model: dimensions, published size, revision."""

    repo: str
    revision: str
    context_tokens: int
    checkpoint_gib: int
    hidden: int
    vocabulary: int
    dense_intermediate: int
    moe: Moe
    mla: Mla
    indexer: Indexer
    kda: Kda
    licence: str
    source: Source
    size_source: Source


KIMI_K31_PRO = Model(
    repo="moonshotai/Kimi-K3.1-Pro",
    revision="d9e99b0792a5e93b78ea9bea62a68167e36ddd9e",
    context_tokens=1_048_576,
    checkpoint_gib=1454,
    hidden=7168,
    vocabulary=163_840,
    dense_intermediate=33_792,
    moe=Moe(
        layers=92,
        experts=896,
        active_experts=16,
        latent=3584,
        intermediate=3072,
        shared_experts=2,
        expert_bits=4,
        scale_bits=8,
        scale_group=32,
    ),
    mla=Mla(layers=24, heads=96, q_rank=1536, kv_rank=512, nope=128, rope=64, value=128),
    indexer=Indexer(heads=32, head=128, top_k=2048),
    kda=Kda(layers=69, heads=96, head=128, kernel=4, convolutions=3),
    licence="Moonshot AI's own: read it on the hub before you download or deploy",
    source=Source(
        where="SGLang kimi-k3.jsx and mamba calculator, flashinfer moe_ep_kimi_k3, llama.cpp b12180 (indexer)",
        date="2026-08 to 2026-11",
    ),
    size_source=RECIPE,
)


@dataclass(frozen=True, kw_only=True)
class Drafter:
    """A small model that proposes tokens. size_bytes: None where no source gives it."""

    repo: str
    method: str
    tokens: int
    size_bytes: int | None
    source: Source


DSPARK_PREVIEW = Drafter(
    repo="Inferact/Kimi-K3.1-Pro-DSpark-preview", method="dspark", tokens=5, size_bytes=None, source=GUIDE
)

MODELS = (KIMI_K31_PRO,)


def model(repo: str) -> Model | None:
    """The row of a repository, or None: then nothing about its memory is known."""
    return next((row for row in MODELS if row.repo == repo), None)
