"""What the weights of a model take: on disk, and on each rank under a way of splitting them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from catalog.models import Model
from catalog.units import GIB

BF16 = 2
MXFP8_BITS = 8 + 8 / 32
"""An 8-bit value and its share of a scale for 32 of them."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Bytes by class of tensor. `other` is what the dimensions do not explain: vision tower, norms, and rounding."""

    routed_experts: float
    shared_experts: float
    latent: float
    kda: float
    mla_down: float
    mla_query: float
    mla_rest: float
    indexer: float
    router: float
    dense: float
    embedding: float
    other: float = 0.0

    @property
    def total(self) -> float:
        """All bytes."""
        return float(sum(getattr(self, field.name) for field in fields(self)))

    @property
    def dense_total(self) -> float:
        """All bytes but the routed experts'."""
        return self.total - self.routed_experts


def derive(model: Model) -> Weights:
    """Bytes by class out of the dimensions: experts in their packed format, everything else in BF16."""
    moe, mla, kda, indexer, hidden = model.moe, model.mla, model.kda, model.indexer, model.hidden
    expert = 3 * moe.latent * moe.intermediate
    expert_bytes = (moe.expert_bits + moe.scale_bits / moe.scale_group) / 8
    query = mla.heads * (mla.nope + mla.rope)
    out = mla.heads * mla.value
    kda_width = kda.heads * kda.head
    decay = hidden * kda.head + kda.head * kda_width
    return Weights(
        routed_experts=moe.layers * moe.experts * expert * expert_bytes,
        shared_experts=BF16 * moe.layers * moe.shared_experts * 3 * hidden * moe.intermediate,
        latent=BF16 * moe.layers * 2 * hidden * moe.latent,
        # query, key, value, output, output gate at full width; decay at low rank; one beta a head; the convolutions
        kda=BF16
        * kda.layers
        * (5 * hidden * kda_width + decay + hidden * kda.heads + kda.convolutions * kda_width * kda.kernel),
        mla_down=BF16 * mla.layers * hidden * (mla.q_rank + mla.kv_rank + mla.rope),
        mla_query=BF16 * mla.layers * mla.q_rank * query,
        # key and value up, output, output gate
        mla_rest=BF16 * mla.layers * (mla.kv_rank * mla.heads * (mla.nope + mla.value) + out * hidden + hidden * out),
        indexer=BF16
        * mla.layers
        * (mla.q_rank * indexer.heads * indexer.head + hidden * indexer.head + hidden * indexer.heads),
        router=BF16 * moe.layers * moe.experts * hidden,
        dense=BF16 * 3 * hidden * model.dense_intermediate,
        embedding=BF16 * 2 * hidden * model.vocabulary,
    )


def checkpoint(model: Model) -> Weights:
    """The derived classes and, as `other`, what the published size has beyond them."""
    derived = derive(model)
    rest = max(0.0, model.checkpoint_gib * GIB - derived.total)
    values = {field.name: getattr(derived, field.name) for field in fields(derived)}
    return Weights(**{**values, "other": rest})


@dataclass(frozen=True, kw_only=True)
class PerRank:
    """Bytes on one rank. even: as if everything were split evenly. small: with the small tensors that engines keep whole on
    every rank (down-projections, indexer, router, vision, and the query under context parallelism). latent: the latent
    projections whole as well. Which of them a build does is not published."""

    even: float
    small: float
    latent: float


def per_rank_tensor_parallel(weights: Weights, *, ranks: int, context_parallel: bool) -> PerRank:
    """Tensor parallelism over `ranks`: experts are split by it whatever the expert-parallel size is."""
    whole = weights.mla_down + weights.indexer + weights.router + weights.other
    if context_parallel:
        whole += weights.mla_query
    extra = (ranks - 1) / ranks
    even = weights.total / ranks
    small = even + whole * extra
    return PerRank(even=even, small=small, latent=small + weights.latent * extra)


def per_rank_data_parallel(weights: Weights, *, ranks: int, quantised: bool) -> float:
    """Data parallelism with the experts spread over `ranks`: every rank holds all the rest.

    quantised: attention, shared experts and latent projections in MXFP8.
    """
    rest = weights.dense_total
    if quantised:
        packed = (
            weights.kda
            + weights.shared_experts
            + weights.latent
            + weights.mla_down
            + weights.mla_query
            + weights.mla_rest
        )
        rest -= packed * (1 - MXFP8_BITS / (8 * BF16))
    return weights.routed_experts / ranks + rest
