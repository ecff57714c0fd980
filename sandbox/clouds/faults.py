"""Faults that a test or a person injects through a JSON file, read anew at every call.

[{"type": "aws:eks/nodeGroup:NodeGroup", "name": "accelerators*", "call": "create", "fault": "partial", "times": 1,
  "message": "…"}]

type, name: patterns (`*` for any), both optional. call: create, read, update, delete, invoke, or an operation of the cloud's
API such as CreateNodegroup. times: how often, 1 unless told; a fault that is used up stays used up for the life of the
state directory, so that a later run succeeds.
"""

from __future__ import annotations

import fnmatch
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.clouds.files import write

KINDS = {
    "throttle": "the API refuses the call for now; the provider retries, as the real one does",
    "error": "the call is refused and does nothing",
    "partial": "the call takes effect, then the resource reports an error",
    "timeout": "the call takes effect, then the wait for the result ends without it",
    "not-found": "reads after the call don't see the resource yet",
    "insufficient-capacity": "instances can't be launched",
}


@dataclass(frozen=True)
class Subject:
    """The resource that the provider is at work on."""

    type: str
    name: str


NOBODY = Subject(type="", name="")
_subject: ContextVar[Subject] = ContextVar("subject", default=NOBODY)


@contextmanager
def working_on(subject: Subject) -> Iterator[None]:
    """Calls made within belong to this resource."""
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


@dataclass(frozen=True)
class Fault:
    """One injected fault that is due now."""

    kind: str
    message: str


class FaultsError(Exception):
    """The faults file can't be used; the message says why."""


class Faults:
    """The faults file and how often each of its entries was used."""

    def __init__(self, file: Path | None, *, state: Path) -> None:
        self._file = file
        self._used_file = state / "faults-used.json"
        self._lock = threading.Lock()

    def due(self, call: str, *, kinds: frozenset[str]) -> Fault | None:
        """The first fault of one of these kinds that applies to the call now; it is used once by this."""
        if self._file is None or not self._file.exists():
            return None
        with self._lock:
            used = json.loads(self._used_file.read_text()) if self._used_file.exists() else {}
            for entry in self._entries():
                key = json.dumps(entry, sort_keys=True)
                if entry["fault"] in kinds and _applies(entry, call) and used.get(key, 0) < entry.get("times", 1):
                    used[key] = used.get(key, 0) + 1
                    write(self._used_file, json.dumps(used, indent=1))
                    return Fault(entry["fault"], entry.get("message", f"injected fault: {entry['fault']}"))
        return None

    def _entries(self) -> list[dict[str, Any]]:
        assert self._file is not None
        entries: list[dict[str, Any]] = json.loads(self._file.read_text() or "[]")
        for entry in entries:
            if entry.get("fault") not in KINDS or "call" not in entry:
                raise FaultsError(
                    f"{self._file}: {entry} needs a call and a fault; faults are {', '.join(sorted(KINDS))}"
                )
        return entries


def _applies(entry: dict[str, Any], call: str) -> bool:
    subject = _subject.get()
    return (
        fnmatch.fnmatchcase(call, entry["call"])
        and fnmatch.fnmatchcase(subject.type, entry.get("type", "*"))
        and fnmatch.fnmatchcase(subject.name, entry.get("name", "*"))
    )
