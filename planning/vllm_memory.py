"""What a vLLM engine has on each rank: weights, KDA state, and what is left for the KV cache."""

from __future__ import annotations

from catalog.hardware import Accelerator
from catalog.models import Model
from catalog.units import GIB
from planning.cache import INDEXER_KEY_BYTES, MLA_RECORD_BYTES, hybrid_block_tokens, state_bytes, token_bytes
from planning.flags import Flags
from planning.memory import RankMemory
from planning.parts import Range
from planning.weights import checkpoint, per_rank_data_parallel

OVERHEAD_GIB = Range(low=3, high=5)
"""Graphs, NCCL and workspaces (engines sheet §6)."""
DEFAULT_UTILISATION = 0.92
DEFAULT_SEQUENCES = 128
INDEXER_FORMAT = "mxfp4"
"""vLLM main keeps the indexer's keys in MXFP4 for this model (kimi_k3_indexer_uses_fp4); the guide's router block follows from it."""


def speculative_tokens(speculation: object) -> int:
    """num_speculative_tokens of a parsed speculative-config, 0 without one."""
    tokens = speculation.get("num_speculative_tokens", 0) if isinstance(speculation, dict) else 0
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


def kv_dtype(flags: Flags) -> str:
    """Format of the KV cache; what the plan does not know counts as bf16, the largest."""
    name = flags.text("kv-cache-dtype", "bf16")
    return name if name in MLA_RECORD_BYTES else "bf16"


def block_tokens(model: Model, flags: Flags) -> int:
    """Tokens in a block of the cache, which the router must know."""
    tp = max(1, flags.whole("tensor-parallel-size", 1))
    derived = hybrid_block_tokens(model, tp=tp, kv=kv_dtype(flags), indexer=INDEXER_FORMAT, ssm="float32")
    return flags.whole("block-size", derived)


def rank_memory(
    model: Model,
    accelerator: Accelerator,
    flags: Flags,
    *,
    role: str,
    context: int,
    speculation: object,
    quantised: bool,
) -> RankMemory:
    """Memory of one rank. context: longest request. quantised: projections in MXFP8."""
    tp, dp = max(1, flags.whole("tensor-parallel-size", 1)), max(1, flags.whole("data-parallel-size", 1))
    weights = _weights(model, tp=tp, dp=dp, quantised=quantised)
    per_sequence = 1 if "use-replayssm" in flags else speculative_tokens(speculation) + 1
    slots = flags.whole("max-num-seqs", DEFAULT_SEQUENCES) * per_sequence
    state = slots * state_bytes(model.kda, tp=tp, ssm="float32") / GIB
    kv = kv_dtype(flags)
    per_token = [
        token_bytes(model, kv=kv, indexer=indexer, context_parallel=1, indexer_replicated=True)
        for indexer in INDEXER_KEY_BYTES
    ]
    budget = flags.number("gpu-memory-utilization", DEFAULT_UTILISATION) * accelerator.memory_bytes / GIB
    least = budget - weights.high - OVERHEAD_GIB.high - state
    most = budget - weights.low - OVERHEAD_GIB.low - state
    # Tensor-parallel ranks all hold the same records; data-parallel ranks hold their own.
    pool = Range(low=max(0.0, least * GIB / max(per_token)), high=max(0.0, most * GIB / min(per_token)))
    need = weights.high + OVERHEAD_GIB.high + state + context * max(per_token) / GIB
    return RankMemory(
        engine="vllm",
        role=role,
        accelerator=accelerator.name,
        ranks=tp * dp,
        visible_gib=accelerator.memory_bytes / GIB,
        budget_gib=budget,
        weights_gib=weights,
        state_gib=state,
        state_slots=slots,
        token_bytes=Range(low=min(per_token), high=max(per_token)),
        pool_tokens=pool.scaled(dp),
        context_tokens=context,
        measured_tokens=None,
        fits=pool.low >= context,
        margin=(budget - need) / budget if budget > 0 else -1.0,
        would_fit=""
        if pool.low >= context
        else "a smaller max-num-seqs, a shorter max-model-len, or quantised projections",
    )


def _weights(model: Model, *, tp: int, dp: int, quantised: bool) -> Range:
    found = checkpoint(model)
    ranks = tp * dp
    if dp > 1:
        return Range.exact(per_rank_data_parallel(found, ranks=ranks, quantised=quantised) / GIB)
    even = found.total / ranks
    # Under sequence-parallel MoE every rank keeps the shared experts, unless VLLM_KIMI_K3_SHARD_SP_SHARED_EXPERT=1.
    whole = found.shared_experts * (ranks - 1) / ranks
    return Range(low=even / GIB, high=(even + whole) / GIB)
