"""An engine's flags as an ordered map: the recipe's, with the user's changes, back to an argument vector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.recipes import SERVED_NAME, Recipe

ALIASES: Mapping[str, Mapping[str, str]] = {
    "sglang": {
        "model": "model-path",
        "tensor-parallel-size": "tp-size",
        "tp": "tp-size",
        "expert-parallel-size": "ep-size",
        "ep": "ep-size",
        "decode-context-parallel-size": "dcp-size",
        "pipeline-parallel-size": "pp-size",
        "data-parallel-size": "dp-size",
        "dp": "dp-size",
        "attention-data-parallel-size": "attn-dp-size",
        "enable-hicache": "enable-hierarchical-cache",
        "nccl-init-addr": "dist-init-addr",
    },
    "vllm": {
        "tp": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "n": "nnodes",
        "r": "node-rank",
        "dcp": "decode-context-parallel-size",
    },
}
"""Other spellings that the engines accept, abbreviations among them; the rules know one name for each flag."""

LARGEST = 1e18
"""A number beyond it is a typing error, and would only overflow."""

Value = bool | int | float | str | None

SUFFIXES: Mapping[str, Mapping[str, int]] = {
    "sglang": {
        **{letter: 10 ** (3 * power) for power, letter in enumerate("kMGT", start=1)},
        **{f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)},
    },
    "vllm": {
        **{letter: 10 ** (3 * power) for power, letter in enumerate("kmgt", start=1)},
        **{letter: 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)},
    },
}
"""What may stand behind a number: SGLang counts like Kubernetes, vLLM by the letter's case (human_readable_int of both)."""

_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)([A-Za-z]*)")


def parse_number(engine: str, text: str) -> float | None:
    """A number as the engine reads it, or None where it would refuse."""
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        return None
    number, suffix = found.groups()
    if not suffix:
        return float(number)
    factor = SUFFIXES[engine].get(suffix)
    if factor is None or ("." in number and factor % 10):
        return None
    return float(number) * factor


@dataclass(frozen=True)
class Flags:
    """Names without dashes → values; None is a bare flag. Order is kept."""

    engine: str
    values: Mapping[str, str | None]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """The value as text, or the default when the flag is not there or is bare."""
        return self.values.get(name) or default

    def whole(self, name: str, default: int) -> int:
        """The value as a whole number; what is none counts as the default (the rule on numbers reports it)."""
        number = self.number(name, default)
        return int(number) if number == int(number) else default

    def number(self, name: str, default: float) -> float:
        """The value as a number; what is none counts as the default (the rule on numbers reports it)."""
        number = parse_number(self.engine, self.values.get(name) or str(default))
        return default if number is None or abs(number) >= LARGEST else number

    def argv(self) -> tuple[str, ...]:
        """As arguments, in order."""
        return tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in self.values.items())


def canonical(engine: str, name: str) -> str:
    """The one name of a flag: no dashes in front, hyphens inside, the long spelling."""
    plain = name.lstrip("-").replace("_", "-")
    return ALIASES[engine].get(plain, plain)


def merge(recipe: Recipe, *, served_name: str, changes: Mapping[str, Value]) -> Flags:
    """The recipe's flags under the user's changes: a value replaces or adds, true is bare, false and null take away."""
    values = {name: served_name if value == SERVED_NAME else value for name, value in recipe.flags}
    for given, change in changes.items():
        name = canonical(recipe.engine, given)
        if change is None or change is False:
            values.pop(name, None)
        elif change is True:
            values[name] = None
        else:
            values[name] = str(change)
    return Flags(engine=recipe.engine, values=values)


def environment(recipe: Recipe, changes: Mapping[str, str | None], **own: str) -> dict[str, str]:
    """The recipe's variables and the plan's own under the user's changes; null takes one away."""
    variables = {**dict(recipe.env), **own}
    for name, value in changes.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables
