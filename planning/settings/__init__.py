"""The configuration of a stack, typed: one schema for each target, chosen by `target`.

`load` takes decoded values, `load_stack_file` a Pulumi.<stack>.yaml, `decode` what Pulumi hands to a running program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planning.findings import ConfigurationError, Finding
from planning.settings.base import Stack
from planning.settings.loading import NAMESPACE, load_model, read_stack_file, refusal, suggestion

if TYPE_CHECKING:
    from planning.settings.dev import Dev
    from planning.settings.eks import EksB300
    from planning.settings.gke import GkeA4xMax, GkeTpu7x

    AnySettings = Dev | EksB300 | GkeA4xMax | GkeTpu7x

TARGETS: Mapping[str, tuple[str, str]] = {
    "dev": ("planning.settings.dev", "Dev"),
    "eks-b300": ("planning.settings.eks", "EksB300"),
    "gke-a4x-max": ("planning.settings.gke", "GkeA4xMax"),
    "gke-tpu7x": ("planning.settings.gke", "GkeTpu7x"),
}
"""Value of `target` → where the model of its settings is: a stack imports its own target's only."""

__all__ = ["TARGETS", "AnySettings", "decode", "load", "load_stack_file", "model_of", "planned_only", "schema"]


def model_of(target: str) -> type[Stack]:
    """The settings model of a target that exists."""
    module, name = TARGETS[target]
    return cast(type[Stack], getattr(import_module(module), name))


def load(values: Mapping[str, object]) -> AnySettings:
    """Settings out of the stack's own values (without the namespace). Raises ConfigurationError with every finding."""
    target = values.get("target")
    if target is None:
        raise ConfigurationError(
            [
                refusal(
                    "target",
                    "target is missing",
                    why="it decides which environment this stack is",
                    remedy="Set it to one of " + ", ".join(TARGETS),
                )
            ]
        )
    if not isinstance(target, str) or target not in TARGETS:
        near = suggestion(str(target), list(TARGETS))
        raise ConfigurationError([refusal("target", "target names no environment", value=target, remedy=near)])
    return cast("AnySettings", load_model(model_of(target), values))


def planned_only(target: str) -> Finding:
    """What `pulumi up` says about an environment that can be planned and not yet made."""
    return refusal(
        "planned-only",
        "this environment can be planned, not yet made",
        value=target,
        why="its components are not built yet",
        remedy="Read the plan: `python -m planning --stack STACK`",
    )


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
    fields = model_of(target).model_fields if target in TARGETS else {}
    return {"target"} | {name for name, field in fields.items() if field.annotation in (str, str | None)}


def _json(value: str) -> object:
    """The JSON value, or the text itself when it is none: the schema then says what was wanted."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def schema() -> dict[str, Any]:
    """JSON Schema of every key of every target."""
    from pydantic.json_schema import models_json_schema

    models = [(model_of(target), "validation") for target in TARGETS]
    _, definitions = models_json_schema(cast(Any, models))
    references = {target: {"$ref": f"#/$defs/{TARGETS[target][1]}"} for target in TARGETS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a stack (keys without their namespace)",
        "oneOf": list(references.values()),
        "discriminator": {
            "propertyName": "target",
            "mapping": {target: reference["$ref"] for target, reference in references.items()},
        },
        **definitions,
    }
