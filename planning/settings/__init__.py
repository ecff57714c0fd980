"""The configuration of a stack, typed: one schema for each target, chosen by `target`.

`load` takes decoded values, `load_stack_file` a Pulumi.<stack>.yaml, `decode` what Pulumi hands to a running program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from planning.findings import ConfigurationError
from planning.settings.base import Stack
from planning.settings.dev import Dev
from planning.settings.eks import EksB300
from planning.settings.loading import NAMESPACE, _error, _suggestion, load_model, read_stack_file

AnySettings = Dev | EksB300

TARGETS: dict[str, type[Stack]] = {"dev": Dev, "eks-b300": EksB300}
"""Value of `target` → the model of the stack's settings."""

__all__ = ["TARGETS", "AnySettings", "decode", "load", "load_stack_file", "schema"]


def load(values: Mapping[str, object]) -> AnySettings:
    """Settings out of the stack's own values (without the namespace). Raises ConfigurationError with every finding."""
    target = values.get("target")
    if target is None:
        raise ConfigurationError(
            [
                _error(
                    "target",
                    "target is missing",
                    why="it decides which environment this stack is",
                    remedy="Set it to one of " + ", ".join(TARGETS),
                )
            ]
        )
    model = TARGETS.get(target) if isinstance(target, str) else None
    if model is None:
        raise ConfigurationError(
            [
                _error(
                    "target",
                    "target names no environment",
                    value=target,
                    remedy=_suggestion(str(target), list(TARGETS)),
                )
            ]
        )
    settings = load_model(model, values)
    assert isinstance(settings, AnySettings)
    return settings


def load_stack_file(path: str | Path) -> AnySettings:
    """Settings out of a Pulumi.<stack>.yaml: its keys `llm-serving:…`."""
    return load(read_stack_file(Path(path)))


def decode(raw: Mapping[str, str]) -> dict[str, object]:
    """Pulumi's own config map, decoded: keys with or without the namespace; what isn't a plain string is JSON there."""
    prefix = NAMESPACE + ":"
    mine = {key.removeprefix(prefix): value for key, value in raw.items() if key.startswith(prefix) or ":" not in key}
    plain = _plain_strings(mine.get("target", ""))
    return {key: value if key in plain else _json(value) for key, value in mine.items()}


def _plain_strings(target: str) -> set[str]:
    model = TARGETS.get(target)
    fields = model.model_fields if model else {}
    return {"target"} | {name for name, field in fields.items() if field.annotation in (str, str | None)}


def _json(value: str) -> object:
    """The JSON value, or the text itself when it is none: the schema then says what was wanted."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def schema() -> dict[str, Any]:
    """JSON Schema of every key of every target."""
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[AnySettings, Field(discriminator="target")]).json_schema()
