"""How far it is: a line every ten seconds in logs, a bar on a terminal, a JSON record when it ends."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

WINDOW_SECONDS = 60.0
TERMINATION_BYTES = 4096
"""Kubernetes keeps this much of a container's termination message."""


class Progress:
    """Counts bytes and files, and says so while it is entered. total_bytes, total_files may grow while it runs."""

    def __init__(self, doing: str, *, every: float = 10.0, clock: Any = time.monotonic) -> None:
        self.doing, self.every = doing, every
        self.total_bytes = self.total_files = self.done_bytes = self.done_files = self.retries = 0
        self._moved = 0
        self._clock = clock
        self.started: float = clock()
        self._samples: deque[tuple[float, int]] = deque([(self.started, 0)])
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._terminal = sys.stderr.isatty()

    def expect(self, *, files: int, size: int) -> None:
        with self._lock:
            self.total_files += files
            self.total_bytes += size

    def already(self, size: int) -> None:
        """A file that needs no work: it counts as done, not as moved."""
        with self._lock:
            self.done_files += 1
            self.done_bytes += size

    def moved(self, size: int) -> None:
        """Bytes that came; negative when they have to come again."""
        with self._lock:
            self.done_bytes += size
            self._moved += max(size, 0)

    def finished(self) -> None:
        with self._lock:
            self.done_files += 1

    def retried(self) -> None:
        with self._lock:
            self.retries += 1

    def rate(self) -> float:
        """Bytes a second over the last minute."""
        now = self._clock()
        with self._lock:
            self._samples.append((now, self._moved))
            while len(self._samples) > 2 and self._samples[0][0] < now - WINDOW_SECONDS:
                self._samples.popleft()
            then, before = self._samples[0]
            return (self._moved - before) / (now - then) if now > then else 0.0

    def line(self) -> str:
        """`staging 312.5/1559.0 GB 20.0 % 498 MB/s 41 min left, 40/200 files, 3 retries`."""
        rate = self.rate()
        share = 100 * self.done_bytes / self.total_bytes if self.total_bytes else 100.0
        left = f"{_time((self.total_bytes - self.done_bytes) / rate)} left" if rate > 0 else "no bytes yet"
        unit, name = (1e9, "GB") if self.total_bytes >= 1e10 else (1e6, "MB")
        return (
            f"{self.doing} {self.done_bytes / unit:.1f}/{self.total_bytes / unit:.1f} {name} {share:.1f} % "
            f"{rate / 1e6:.0f} MB/s {left}, {self.done_files}/{self.total_files} files, {self.retries} retries"
        )

    def metrics(self) -> dict[str, float | int]:
        seconds = self._clock() - self.started
        return {
            "bytes": self.done_bytes,
            "bytes_moved": self._moved,
            "files": self.done_files,
            "retries": self.retries,
            "seconds": round(seconds, 1),
            "mb_per_second": round(self._moved / 1e6 / seconds, 1) if seconds > 0 else 0.0,
        }

    def _run(self) -> None:
        while not self._over.wait(0.5 if self._terminal else self.every):
            if self._terminal:
                width = os.get_terminal_size(sys.stderr.fileno()).columns
                sys.stderr.write("\r" + _bar(self.line(), self.done_bytes, self.total_bytes, width))
                sys.stderr.flush()
            else:
                say(self.line())

    def __enter__(self) -> Progress:
        # Rate and duration are those of the work: loading libraries is over.
        self.started = self._clock()
        self._samples = deque([(self.started, 0)])
        self._thread = threading.Thread(target=self._run, daemon=True, name="progress")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()
        if self._terminal:
            sys.stderr.write("\n")
        elif self._moved:
            say(self.line())


def _bar(line: str, done: int, total: int, width: int) -> str:
    room = max(0, width - len(line) - 4)
    full = int(room * done / total) if total else room
    return f"[{'#' * full}{'.' * (room - full)}] {line}"[: width - 1].ljust(width - 1)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def say(line: str) -> None:
    """One line of the log."""
    print(line, file=sys.stderr, flush=True)


def report(path: str | None, record: Mapping[str, Any]) -> None:
    """Leaves `record` where Kubernetes reads the termination message; somewhere else than in a container, nowhere."""
    if not path or not os.path.exists(path):
        return
    text = json.dumps(record, ensure_ascii=False)
    if len(text.encode()) > TERMINATION_BYTES:
        text = json.dumps({**record, "error": str(record.get("error", ""))[:1000]})
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
