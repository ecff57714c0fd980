"""A file as a sequence of parts: fetched side by side, handed on in order, hashed on the way."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from .errors import StoreError

MIB = 1024 * 1024
SMALLEST_PART = 8 * MIB
MOST_PARTS = 10_000
"""Of one object; S3 and GCS have the same limit."""
AHEAD = 3
"""Parts of one file that are fetched or wait for their turn."""
BEHIND = 2
"""Parts of one file that are on their way into the store; the client library holds one more."""

Fetch = Callable[[int, int], Sequence[Any]]
"""(offset, length) → buffers that hold these bytes one after the other."""


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """How one file is cut. size: of a part. ahead, behind: parts in flight on either side. memory: bytes at most."""

    size: int
    ahead: int
    behind: int

    @property
    def memory(self) -> int:
        return self.size * (self.ahead + self.behind + 2)


def plan_parts(size: int, *, budget: int) -> PartPlan:
    """Parts for a file of `size` bytes. Raises StoreError when not even one at a time fits into `budget` bytes.

    A file of one part needs no more memory than itself.
    """
    if size <= SMALLEST_PART:
        return PartPlan(size=max(size, 1), ahead=1, behind=0)
    part = max(SMALLEST_PART, -(-size // MOST_PARTS // MIB) * MIB)
    while part * MOST_PARTS < size:
        part += MIB
    for ahead, behind in ((AHEAD, BEHIND), (2, 1), (1, 1)):
        plan = PartPlan(size=part, ahead=ahead, behind=behind)
        if plan.memory <= budget:
            return plan
    raise StoreError(
        f"a file of {size} bytes needs parts of {part // MIB} MiB, of which {budget // MIB} MiB of memory hold too few",
        remedy=f"Give it --memory {-(-plan.memory // MIB)}",
    )


def ordered(fetch: Fetch, *, size: int, plan: PartPlan, pool: Executor) -> Iterator[Any]:
    """The buffers of a file in order, at most `plan.ahead` parts fetched and not yet handed on."""
    waiting: deque[Future[Sequence[Any]]] = deque()
    offset = 0
    try:
        while offset < size or waiting:
            while offset < size and len(waiting) < plan.ahead:
                length = min(plan.size, size - offset)
                waiting.append(pool.submit(fetch, offset, length))
                offset += length
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        for future in waiting:
            if not future.cancelled():
                future.exception()


class Digests:
    """SHA-256 of a stream, and the id that git has for it when `git_size` is given (git puts the size in front)."""

    def __init__(self, *, git_size: int | None = None) -> None:
        self._sha256 = hashlib.sha256()
        self._git = None
        if git_size is not None:
            self._git = hashlib.sha1(f"blob {git_size}\0".encode(), usedforsecurity=False)

    def update(self, data: Any) -> None:
        self._sha256.update(data)
        if self._git:
            self._git.update(data)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def git_blob(self) -> str | None:
        return self._git.hexdigest() if self._git else None
