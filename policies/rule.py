"""A rule: which resources it looks at, and what it finds wrong with one of them, or with all of them together. No Pulumi."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Check = Callable[[Mapping[str, Any]], Iterator[str]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """name: what a violation is reported under. types: Pulumi type tokens. check: yields one sentence a violation, with its remedy."""

    name: str
    description: str
    types: frozenset[str]
    check: Check

    def violations(self, kind: str, properties: Mapping[str, Any]) -> list[str]:
        """What is wrong with a resource of this type; nothing for types that the rule does not look at."""
        return [*self.check(properties)] if kind in self.types else []


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of a stack: its Pulumi type token and what is asked for."""

    type: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StackRule:
    """A rule about what resources are together. check: yields one sentence a violation, with its remedy."""

    name: str
    description: str
    check: Callable[[Sequence[Resource]], Iterator[str]]


def items(value: Any) -> list[Any]:
    """A list property, whether it is there or not; one object counts as a list of one."""
    if value is None:
        return []
    return [*value] if _is_list(value) else [value]


def count(value: Any) -> int:
    """How many `items` there are; unlike those it does not look at them, and they may be unknown yet."""
    return len(value) if _is_list(value) else int(value is not None)


def part(properties: Mapping[str, Any], *path: str) -> Any:
    """A nested property or None; a block that comes as a list of one is looked into."""
    found: Any = properties
    for name in path:
        found = found[0] if _is_list(found) and len(found) else found
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _is_list(value: object) -> bool:
    """Pulumi hands over sequences of its own, which are no lists: they refuse to show what is not known yet."""
    return isinstance(value, Sequence) and not isinstance(value, str)
