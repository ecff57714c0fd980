"""Whether it fits: per rank, per host, and in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.models import DSPARK_PREVIEW
from planning.findings import Severity
from planning.rules.context import Context, EngineView
from planning.rules.rule import Found, Rules

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("engines sheet §6: formula of the pools; dimensions of the model")

THIN_MARGIN = 0.05
TIGHT = 0.75
"""Of physical memory, where allocatable is unknown."""


@RULES.stack(
    "memory-weights",
    ERROR,
    why="the engine would end with out of memory while it loads, after everything before it was paid for",
    remedy="Take an accelerator with more memory, or more ranks",
)
def _(context: Context) -> Iterator[Found]:
    for rank in context.memory.ranks:
        if not rank.weights_fit:
            remedy = f"It would fit with {rank.would_fit}" if rank.would_fit else ""
            yield Found(
                f"{rank.role}: the weights don't fit into {rank.ranks} × {rank.accelerator}",
                f"{rank.weights_gib.low:.1f} GiB a rank, {rank.budget_gib:.1f} GiB to fill",
                remedy,
            )


@RULES.stack(
    "memory-context",
    ERROR,
    why="a request of the full context could never be admitted, and the engine refuses to start or hangs on it",
    remedy="Shorten the context, or raise the memory fraction",
)
def _(context: Context) -> Iterator[Found]:
    for rank in context.memory.ranks:
        if rank.weights_fit and rank.fits is False:
            yield Found(
                f"{rank.role}: a request of {rank.context_tokens:,} tokens does not fit",
                f"{int(rank.pool_tokens.low):,} tokens in the pool",
                f"It would fit with {rank.would_fit}" if rank.would_fit else "",
            )


@RULES.stack(
    "memory-margin",
    WARNING,
    why="what the build replicates on every rank is known to a few per cent only",
    remedy="Lower max-running-requests or context-length, and read the pool's size in the engine's log",
)
def _(context: Context) -> Iterator[Found]:
    for rank in context.memory.ranks:
        if rank.fits and rank.margin is not None and rank.margin < THIN_MARGIN:
            yield Found(f"{rank.role}: less than {THIN_MARGIN:.0%} of the rank's memory is spare", f"{rank.margin:.1%}")


@RULES.stack(
    "memory-host",
    ERROR,
    why="pinned memory beyond what the host has ends the pod or the node",
    remedy="Make the segments smaller, or keep donors on nodes without engines",
)
def _(context: Context) -> Iterator[Found]:
    for host in context.memory.hosts:
        if not host.fits:
            parts = " + ".join(f"{share.gib:.0f} {share.what}" for share in host.shares)
            yield Found(
                f"{host.role}: {host.total_gib:,.0f} GiB are planned, and {host.machine} has {host.usable_gib:,.0f} GiB",
                parts,
            )


@RULES.stack(
    "memory-host-tight",
    WARNING,
    why="no source gives what the host leaves to pods, or what the engine itself takes beside this",
    remedy="Read `kubectl get node -o jsonpath={.status.allocatable.memory}` before the engines are scheduled",
)
def _(context: Context) -> Iterator[Found]:
    for host in context.memory.hosts:
        if host.fits and host.assumed and host.total_gib > TIGHT * host.usable_gib:
            yield Found(
                f"{host.role}: {host.total_gib:,.0f} GiB are planned, and {host.machine} has {host.usable_gib:,.0f} GiB of physical memory",
            )


@RULES.stack(
    "memory-limit",
    ERROR,
    why="/dev/shm counts against the pod's limit, and the limit must fit on the node",
    remedy="Lower shared memory or the engine's host caches",
)
def _(context: Context) -> Iterator[Found]:
    for view in context.engines:
        if view.workload.shm_gib >= view.workload.memory_gib:
            yield Found(
                f"{view.role}: shared memory fills the pod's limit",
                f"{view.workload.shm_gib} of {view.workload.memory_gib} GiB",
            )


@RULES.engine(
    "vllm",
    "memory-drafter",
    NOTE,
    why="no source gives the size of the drafter's weights",
    remedy="Read the model's memory in the engine's log, and lower max-num-seqs if the pool is smaller than planned",
)
def _(view: EngineView) -> Iterator[Found]:
    if "speculative-config" in view.flags and DSPARK_PREVIEW.size_bytes is None:
        yield Found("the drafter is not counted in the memory")


@RULES.engine(
    "vllm",
    "memory-quantisation",
    WARNING,
    why="memory is computed with MXFP8 projections, but the guide's JSON for that is not public",
    remedy="Set decode.flags quantization-config, or quantise_projections: false to plan with BF16",
    source="llm-d guide kimi-k3-1",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.quantised and "quantization-config" not in view.flags:
        yield Found("the engine is not told to quantise its projections", "quantization-config")
