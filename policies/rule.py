"""A rule: which resources it looks at, and what it finds wrong with one of them. No Pulumi."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


def items(value: Any) -> list[Any]:
    """A list property, whether it is there or not; one object counts as a list of one."""
    if value is None:
        return []
    return [*value] if isinstance(value, list | tuple) else [value]


def part(properties: Mapping[str, Any], *path: str) -> Any:
    """A nested property or None; a block that comes as a list of one is looked into."""
    found: Any = properties
    for name in path:
        found = items(found)[0] if isinstance(found, list | tuple) and found else found
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
