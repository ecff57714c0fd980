"""How hard the hub is asked: fewer requests at once after a refusal, more after successes, and none until Retry-After."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from .errors import StoppedError

STOPPED = "stopped by a signal"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to keep trying. give_up: seconds without a byte of progress; pauses grow from 1/1800 of it to 1/15."""

    give_up: float = 900.0

    @property
    def first(self) -> float:
        """The shortest pause: 0.5 s of 900."""
        return self.give_up / 1800

    @property
    def longest(self) -> float:
        """The longest pause: 60 s of 900."""
        return self.give_up / 15

    def pause(self, attempt: int) -> float:
        """Seconds before try `attempt` (from 1): exponential, with full jitter above half."""
        longest: float = min(self.longest, self.first * 2.0 ** min(attempt - 1, 16))
        return longest * random.uniform(0.5, 1.0)


class Stop:
    """Set by SIGTERM and SIGINT; everything that waits, waits here."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def wait(self) -> None:
        """Waits for the signal."""
        self._event.wait()

    def sleep(self, seconds: float) -> None:
        """Sleeps, or raises StoppedError."""
        self._event.wait(seconds)
        self.check()

    def check(self) -> None:
        if self._event.is_set():
            raise StoppedError(STOPPED, remedy="Finished files stay; run it again to go on")


class AdaptiveLimit:
    """At most `most` requests at once: halved when the hub refuses, one more after a round of successes."""

    def __init__(self, most: int, *, stop: Stop) -> None:
        self.most = most
        self.limit = float(most)
        self.lowest = float(most)
        """The smallest limit there was."""
        self._running = 0
        self._pause_until = 0.0
        self._decreased = 0.0
        self._stop = stop
        self._changed = threading.Condition()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Waits for a place, and for the end of a pause that the hub asked for."""
        with self._changed:
            while True:
                self._stop.check()
                wait = self._pause_until - time.monotonic()
                if wait <= 0 and self._running < max(1, int(self.limit)):
                    break
                self._changed.wait(min(wait, 0.5) if wait > 0 else 0.5)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify()

    def succeeded(self) -> None:
        with self._changed:
            self.limit = min(float(self.most), self.limit + 1 / max(self.limit, 1.0))

    def refused(self, retry_after: float | None) -> None:
        """The hub said 429 or 503. Refusals of requests that were under way together count once."""
        now = time.monotonic()
        with self._changed:
            if now - self._decreased > 1.0:
                self.limit = max(1.0, self.limit / 2)
                self.lowest = min(self.lowest, self.limit)
                self._decreased = now
            if retry_after:
                # Everybody waits, and not everybody comes back in the same moment.
                self._pause_until = max(self._pause_until, now + retry_after * random.uniform(1.0, 1.1))


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, in either of its forms; None without a sound one."""
    if not value:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
