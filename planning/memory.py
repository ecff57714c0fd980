"""The figures of the memory part of a plan, whatever the engine: what a rank holds, what a host holds, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.units import GIB
from planning.parts import Part, Range


class Hypothesis(Part):
    """One way in which the build may work, and the pool that it would give. consistent: with what was measured."""

    name: str
    pool_tokens: Range
    consistent: bool
    why: str


class RankMemory(Part):
    """Accelerator memory of one rank of an engine, in GiB, and what it means in tokens.

    budget_gib: what the engine may fill (its memory fraction of what is visible). pool_tokens: of the whole engine.
    measured_tokens: what someone measured on this hardware with these flags. fits: one request of the full context fits
    beside everything else. None: nobody can say.
    """

    engine: str
    role: str
    accelerator: str
    ranks: int
    visible_gib: float
    budget_gib: float
    weights_gib: Range
    state_gib: float
    state_slots: int
    token_bytes: Range
    pool_tokens: Range
    context_tokens: int
    measured_tokens: int | None
    hypotheses: tuple[Hypothesis, ...] = ()
    fits: bool | None
    margin: float | None
    would_fit: str = ""

    @property
    def weights_fit(self) -> bool:
        """Whether the weights alone fit into the budget, seen kindly."""
        return self.weights_gib.low <= self.budget_gib


class HostShare(Part):
    """One use of a host's memory, in GiB."""

    what: str
    gib: float


class HostMemory(Part):
    """Host memory of one node: what is planned for it and what it has. assumed: no source gives its allocatable memory,
    so all of its physical memory is taken for it."""

    machine: str
    role: str
    shares: tuple[HostShare, ...]
    total_gib: float
    usable_gib: float
    assumed: bool
    fits: bool

    @classmethod
    def of(
        cls, *, machine: str, role: str, shares: Mapping[str, float], usable_bytes: int, assumed: bool
    ) -> HostMemory:
        """shares: use → bytes."""
        total = sum(shares.values())
        return cls(
            machine=machine,
            role=role,
            shares=tuple(HostShare(what=what, gib=size / GIB) for what, size in shares.items()),
            total_gib=total / GIB,
            usable_gib=usable_bytes / GIB,
            assumed=assumed,
            fits=total <= usable_bytes,
        )


class CacheTier(Part):
    """One tier of an engine's KV cache. pages: of the engine's page size. basis: computed or measured."""

    role: str
    name: str
    tokens: int
    pages: int
    basis: str


class Memory(Part):
    """Everything about memory. checkpoint_gib: derived from the dimensions; published_gib: what the source says.
    tiers: of the cache, where there is more than one."""

    checkpoint_gib: float
    published_gib: float
    ranks: tuple[RankMemory, ...]
    hosts: tuple[HostMemory, ...]
    tiers: tuple[CacheTier, ...] = ()
