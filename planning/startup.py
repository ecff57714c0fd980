"""How long it takes to the first token, and the time limits that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planning.parts import Part, Range, seconds_to_read

if TYPE_CHECKING:
    from catalog.durations import Duration
    from catalog.source import Source
    from catalog.storage import Rate

PROBE_PERIOD_SECONDS = 10
ROUNDING_SECONDS = 600
HEADROOM = 1.25
"""A limit is the slow end and a quarter: the ranges are what others saw, not what can happen."""
STAGING_HEADROOM = 3
"""A hub gives what it likes: the expected rate is the user's guess."""
PROBE_FLOOR_READS = 2
PROBE_FLOOR_SECONDS = 20 * 60
"""A startup probe allows at least twice the read time and twenty minutes (engines sheet §13.5)."""
FIRST_COMPILE_FLOOR_SECONDS = 90 * 60
"""First start on sm_103 without caches: user notes ask for 90 minutes or more."""


class Step(Part):
    """One step of `up`. billed: what costs money while it runs. after: names of the steps it waits for.

    basis: how far the range can be trusted: `published`, `measured`, `field note`, `assumption` (nobody publishes it; our
    guess), or `your setting`.
    """

    name: str
    seconds: Range
    after: tuple[str, ...]
    billed: str
    source: str
    basis: str


class Limits(Part):
    """Time limits in seconds, each derived from the steps. startup_*: of the startup probe."""

    startup_period_seconds: int
    startup_failures: int
    engine_ready_seconds: int
    stage_seconds: int
    hydrate_seconds: int
    router_ready_seconds: int
    smoke_seconds: int

    @property
    def startup_seconds(self) -> int:
        """What the startup probe allows in all."""
        return self.startup_period_seconds * self.startup_failures


class Startup(Part):
    """Steps in order, the time to the first token, and the limits.

    first_token_seconds: from the start of `up` (with a block that is active). accelerated_seconds: from the moment the
    accelerators are billed to the first token. restart_seconds: a restarted engine whose caches and weights are there.
    """

    steps: tuple[Step, ...]
    first_token_seconds: Range
    accelerated_seconds: Range
    restart_seconds: Range
    limits: Limits


def step(
    name: str, spent: Duration | Range, *, after: Sequence[str], billed: str, source: Source | None = None
) -> Step:
    """A step out of a row of the catalogue, or of a computed range and its source."""
    if not isinstance(spent, Range):
        source = spent.source
        spent = Range(low=spent.fast, high=spent.slow)
    return Step(
        name=name,
        seconds=spent,
        after=tuple(after),
        billed=billed,
        source=f"{source.where} ({source.date}, {source.kind})" if source else "",
        basis=source.kind if source else "your setting",
    )


def read(size: float, rate: Rate, *, readers: int = 1) -> Range:
    """Seconds until `readers` nodes have read `size` bytes each: side by side, or sharing one store's throughput."""
    return seconds_to_read(size * (1 if rate.per_node else readers), slow=rate.slow, fast=rate.fast)


def path_seconds(steps: Sequence[Step], *, until: str, since: frozenset[str] = frozenset()) -> Range:
    """Earliest and latest end of `until` on its longest way through the steps; steps in `since` are done already."""
    by_name = {found.name: found for found in steps}

    def end(name: str) -> Range:
        found = by_name[name]
        if name in since:
            return Range.exact(0)
        before = [end(other) for other in found.after]
        start = Range(low=max((b.low for b in before), default=0.0), high=max((b.high for b in before), default=0.0))
        return start + found.seconds

    return end(until)


def rounded_up(seconds: float, unit: int = ROUNDING_SECONDS) -> int:
    """The next multiple of the unit, one at least, so that a small change of an estimate changes no manifest."""
    return max(1, math.ceil(seconds / unit)) * unit


def startup_budget(*, read_seconds: Range, compile_seconds: Range) -> int:
    """Seconds that a startup probe allows: the slow end with headroom, and never below what the sources ask for."""
    slow = (read_seconds.high + compile_seconds.high) * HEADROOM
    floor = PROBE_FLOOR_READS * read_seconds.high + PROBE_FLOOR_SECONDS
    return rounded_up(max(slow, floor, FIRST_COMPILE_FLOOR_SECONDS))
