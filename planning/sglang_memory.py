"""What an SGLang engine has on each rank: weights, KDA state and KV pool, by SGLang's own formula.

P = free after the weights − what the memory fraction leaves alone; the state pool and the KV pool share P. Two things about
the K3.1 build are not published: how the indexer's keys are kept, and which of two rules sizes the state pool. Each
combination is a hypothesis; a measured pool says which are still possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from catalog.hardware import B300, Accelerator
from catalog.measured import SGLANG_B300_POOL
from catalog.models import KIMI_K31_PRO, Model
from catalog.recipes import FORCED_KV_DTYPE, SGLANG_B300
from catalog.units import GIB
from planning.cache import MLA_RECORD_BYTES, SSM_BYTES, state_bytes, token_bytes
from planning.flags import Flags, merge
from planning.memory import CacheTier, Hypothesis, RankMemory
from planning.parts import Range
from planning.weights import PerRank, checkpoint, per_rank_tensor_parallel

SLOTS_PER_REQUEST = {"auto": 5, "extra_buffer": 5, "extra_buffer_lazy": 4, "no_buffer": 3}
"""State slots that one running request holds, by `--mamba-radix-cache-strategy`; auto is extra_buffer for this model."""
STATE_TO_KV = 0.9
"""Fallback of `--mamba-full-memory-ratio`."""
DEFAULT_FRACTION = 0.88
DEFAULT_RUNNING = 48
TOLERANCE = 0.10
"""How far a prediction may be from a measured pool and still count as possible: the engines' sheet trusts it to ±10 %."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One hypothesis. indexer: format of its keys. replicated: every rank of context parallelism keeps all of them.
    pinned: the state pool has exactly the slots that the running requests need; otherwise it takes its ratio."""

    name: str
    indexer: str
    replicated: bool
    pinned: bool


RULES = (
    Rule(
        name="A: indexer fp8 on every rank, state pinned to the requests", indexer="fp8", replicated=True, pinned=True
    ),
    Rule(name="B: indexer MXFP4 on every rank, state by ratio", indexer="mxfp4", replicated=True, pinned=False),
    Rule(name="C: indexer fp8 on every rank, state by ratio", indexer="fp8", replicated=True, pinned=False),
    Rule(
        name="D: indexer fp8 split by context parallelism, state by ratio",
        indexer="fp8",
        replicated=False,
        pinned=False,
    ),
)
"""The four that the sources suggest (engines sheet §6): A and C are SGLang main, B is PR 30546, D is a build that splits."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What of the flags decides about memory."""

    tp: int
    dcp: int
    fraction: float
    running: int
    slots_per_request: int
    ratio: float
    ssm: str
    kv: str
    context: int

    @classmethod
    def of(cls, flags: Flags, *, context: int) -> Shape:
        """Out of the flags; context: the model's, where the flags don't bound it."""
        kv = flags.text("kv-cache-dtype", FORCED_KV_DTYPE)
        return cls(
            tp=max(1, flags.whole("tp-size", 1)),
            dcp=max(1, flags.whole("dcp-size", 1)),
            fraction=flags.number("mem-fraction-static", DEFAULT_FRACTION),
            running=flags.whole("max-running-requests", DEFAULT_RUNNING),
            slots_per_request=SLOTS_PER_REQUEST.get(flags.text("mamba-radix-cache-strategy", "auto"), 5),
            ratio=flags.number("mamba-full-memory-ratio", STATE_TO_KV),
            ssm=flags.text("mamba-ssm-dtype", "float32"),
            kv=kv if kv in MLA_RECORD_BYTES else FORCED_KV_DTYPE,
            context=flags.whole("context-length", context),
        )

    @property
    def slots(self) -> int:
        """State slots for the running requests."""
        return self.running * self.slots_per_request


def budget_bytes(accelerator: Accelerator, fraction: float) -> float:
    """What weights and pools may fill together."""
    return fraction * (accelerator.memory_bytes - accelerator.context_bytes)


def _state(model: Model, shape: Shape) -> int:
    return state_bytes(model.kda, tp=shape.tp, ssm=shape.ssm if shape.ssm in SSM_BYTES else "float32")


def pool_tokens(model: Model, accelerator: Accelerator, shape: Shape, rule: Rule, weights: float) -> float:
    """Tokens in the pool of the whole engine under one hypothesis; 0 when nothing is left for it."""
    free = budget_bytes(accelerator, shape.fraction) - weights
    per_token = token_bytes(
        model, kv=shape.kv, indexer=rule.indexer, context_parallel=shape.dcp, indexer_replicated=rule.replicated
    )
    if rule.pinned:
        padding = 1
        kv = free - (shape.slots + padding) * _state(model, shape)
    else:
        kv = free / (1 + shape.ratio)
    return max(0.0, kv / per_token)


def _shares(model: Model, shape: Shape) -> PerRank:
    return per_rank_tensor_parallel(checkpoint(model), ranks=shape.tp, context_parallel=shape.dcp > 1)


def _tokens(model: Model, accelerator: Accelerator, shape: Shape, rule: Rule) -> dict[str, float]:
    shares = _shares(model, shape)
    ways = {"even": shares.even, "small tensors whole": shares.small, "latent projections whole": shares.latent}
    return {way: pool_tokens(model, accelerator, shape, rule, weights) for way, weights in ways.items()}


@lru_cache
def possible(measured: int = SGLANG_B300_POOL.value) -> dict[str, tuple[str, ...]]:
    """Hypothesis → ways of splitting the weights under which it predicts the measured pool of the recipe's run."""
    flags = merge(SGLANG_B300, served_name="", changes={})
    shape = Shape.of(flags, context=KIMI_K31_PRO.context_tokens)
    return {
        rule.name: tuple(
            way
            for way, tokens in _tokens(KIMI_K31_PRO, B300, shape, rule).items()
            if abs(tokens - measured) <= TOLERANCE * measured
        )
        for rule in RULES
    }


def hypotheses(model: Model, accelerator: Accelerator, shape: Shape) -> tuple[Hypothesis, ...]:
    """Every hypothesis with its pool; one that the measured run rules out says by how much."""
    ways = possible()
    found = []
    for rule in RULES:
        tokens = _tokens(model, accelerator, shape, rule)
        kept = [tokens[way] for way in ways[rule.name]]
        values = kept or list(tokens.values())
        why = (
            "agrees with the measured run if weights are split: " + " or ".join(ways[rule.name])
            if kept
            else f"more than {TOLERANCE:.0%} from the measured {SGLANG_B300_POOL.value:,} tokens, however weights are split"
        )
        pool = Range(low=min(values), high=max(values))
        found.append(Hypothesis(name=rule.name, pool_tokens=pool, consistent=bool(kept), why=why))
    return tuple(found)


def is_measured_run(accelerator: Accelerator, shape: Shape) -> bool:
    """Whether this is what the recipe's figure was measured with."""
    recipe = Shape.of(merge(SGLANG_B300, served_name="", changes={}), context=KIMI_K31_PRO.context_tokens)
    return accelerator == B300 and recipe == shape


def rank_memory(model: Model, accelerator: Accelerator, flags: Flags, *, role: str = "unified") -> RankMemory:
    """Memory of one rank of an SGLang engine whose pool can be computed (CUDA)."""
    shape = Shape.of(flags, context=model.context_tokens)
    shares = _shares(model, shape)
    every = hypotheses(model, accelerator, shape)
    kept = [found for found in every if found.consistent] or list(every)
    pool = Range(low=min(f.pool_tokens.low for f in kept), high=max(f.pool_tokens.high for f in kept))
    rules = [rule for rule, found in zip(RULES, every, strict=True) if found in kept]
    per_token = [
        token_bytes(model, kv=shape.kv, indexer=r.indexer, context_parallel=shape.dcp, indexer_replicated=r.replicated)
        for r in rules
    ]
    budget = budget_bytes(accelerator, shape.fraction)
    need = shares.small + shape.slots * _state(model, shape) + max(per_token) * shape.context
    margin = (budget - need) / budget if budget > 0 else -1.0
    fits = pool.low >= shape.context
    return RankMemory(
        engine="sglang",
        role=role,
        accelerator=accelerator.name,
        ranks=shape.tp,
        visible_gib=accelerator.memory_bytes / GIB,
        budget_gib=budget / GIB,
        weights_gib=Range(low=shares.even / GIB, high=shares.small / GIB),
        state_gib=shape.slots * _state(model, shape) / GIB,
        state_slots=shape.slots,
        token_bytes=Range(low=min(per_token), high=max(per_token)),
        pool_tokens=pool,
        context_tokens=shape.context,
        measured_tokens=SGLANG_B300_POOL.value if is_measured_run(accelerator, shape) else None,
        hypotheses=every,
        fits=fits,
        margin=margin,
        would_fit="" if fits else what_would_fit(model, accelerator, shape),
    )


def what_would_fit(model: Model, accelerator: Accelerator, shape: Shape) -> str:
    """The nearest changes under which a request of the full context fits."""
    options = []
    divisors = [ranks for ranks in (8, 16, 24, 32, 48, 96) if ranks > shape.tp and model.kda.heads % ranks == 0]
    for ranks in divisors:
        wider = Shape(**{**shape.__dict__, "tp": ranks, "dcp": ranks if shape.dcp > 1 else 1})
        if _smallest_pool(model, accelerator, wider) >= wider.context:
            options.append(f"{ranks} ranks of {accelerator.name} (tp-size={ranks})")
            break
    for fraction in (0.9, 0.92, 0.95):
        richer = Shape(**{**shape.__dict__, "fraction": fraction})
        if fraction > shape.fraction and _smallest_pool(model, accelerator, richer) >= shape.context:
            options.append(f"mem-fraction-static={fraction}")
            break
    tokens = int(_smallest_pool(model, accelerator, shape))
    if tokens >= 4096:
        options.append(f"context-length={tokens // 4096 * 4096}")
    return ", or ".join(options) or "an accelerator with more memory"


def _smallest_pool(model: Model, accelerator: Accelerator, shape: Shape) -> float:
    ways = possible()
    return min(_tokens(model, accelerator, shape, rule)[way] for rule in RULES for way in ways[rule.name])


def host_pages(hbm_pages: int, ratio: float) -> int:
    """Pages of the host tier: HiCache's ratio of the device's pages, and one for padding."""
    return int(hbm_pages * ratio) + 1


def tpu_memory(
    model: Model, accelerator: Accelerator, flags: Flags, *, hbm_tokens: int | None
) -> tuple[RankMemory, tuple[CacheTier, ...], float]:
    """Memory of one TPU core, the cache's tiers, and bytes of the host tier a rank.

    hbm_tokens: the measured pool; None when these flags are not those of the measured run. Nobody knows what caps it: the
    memory that is left would hold six times as much.
    """
    shape = Shape.of(flags, context=model.context_tokens)
    share = per_rank_tensor_parallel(checkpoint(model), ranks=shape.tp, context_parallel=False)
    per_token = token_bytes(model, kv=shape.kv, indexer="fp8", context_parallel=1, indexer_replicated=True)
    budget = accelerator.memory_bytes - accelerator.context_bytes
    pool = Range.exact(hbm_tokens) if hbm_tokens else Range(low=0, high=max(0.0, (budget - share.even) / per_token))
    page = max(1, flags.whole("page-size", 1))
    tiers: tuple[CacheTier, ...] = ()
    host_bytes = 0.0
    if hbm_tokens:
        pages = hbm_tokens // page
        tiers = (CacheTier(role="unified", name="HBM", tokens=hbm_tokens, pages=pages, basis="measured"),)
        if "enable-hierarchical-cache" in flags:
            more = host_pages(pages, flags.number("hicache-ratio", 2.0))
            host = CacheTier(role="unified", name="host DRAM", tokens=more * page, pages=more, basis="computed")
            tiers = (*tiers, host)
            host_bytes = host.tokens * per_token
    rank = RankMemory(
        engine="sglang",
        role="unified",
        accelerator=accelerator.name,
        ranks=shape.tp,
        visible_gib=accelerator.memory_bytes / GIB,
        budget_gib=budget / GIB,
        weights_gib=Range(low=share.even / GIB, high=share.small / GIB),
        state_gib=0.0,
        state_slots=0,
        token_bytes=Range.exact(per_token),
        pool_tokens=pool,
        context_tokens=shape.context,
        measured_tokens=hbm_tokens,
        fits=hbm_tokens >= shape.context if hbm_tokens else None if share.even < budget else False,
        margin=None,
        would_fit=f"context-length={hbm_tokens // page * page}" if hbm_tokens and hbm_tokens < shape.context else "",
    )
    return rank, tiers, host_bytes
