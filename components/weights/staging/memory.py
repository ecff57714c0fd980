"""One budget of memory for all files that are under way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .limits import Stop
from .parts import PartPlan


class Budget:
    """At most `most` bytes of buffers at once: a file waits until what it may need at most is free."""

    def __init__(self, most: int, *, stop: Stop) -> None:
        self.most = most
        self._used = 0
        self._stop = stop
        self._changed = threading.Condition()

    @contextmanager
    def reserved(self, plan: PartPlan) -> Iterator[PartPlan]:
        """Holds the memory of `plan` while it is entered."""
        with self._changed:
            while self._used + plan.memory > self.most:
                self._stop.check()
                self._changed.wait(0.5)
            self._used += plan.memory
        try:
            yield plan
        finally:
            with self._changed:
                self._used -= plan.memory
                self._changed.notify_all()
