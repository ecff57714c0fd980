"""What differs between two sets of inputs, and which of it replaces the resource."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """kind: add, delete or update."""

    path: str
    kind: str
    replaces: bool


def changes(old: dict[str, Any], new: dict[str, Any], *, updatable: frozenset[str]) -> list[Change]:
    """Every differing leaf. updatable: paths of properties that can change in place, with all below them."""
    return [
        Change(path, kind, replaces=not _covered(path, updatable)) for path, kind in _differences(old, new, path="")
    ]


def _differences(old: Any, new: Any, *, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            below = f"{path}.{name}" if path else name
            if name not in old:
                yield below, "add"
            elif name not in new:
                yield below, "delete"
            else:
                yield from _differences(old[name], new[name], path=below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, path=f"{path}[{i}]")
    elif old != new:
        yield path, "update"


def _covered(path: str, updatable: frozenset[str]) -> bool:
    plain = re.sub(r"\[\d+\]", "", path)
    parts = plain.split(".")
    return any(".".join(parts[: i + 1]) in updatable for i in range(len(parts)))
