"""What botocore's service models say of a request: members, types, what is required, enums, patterns, ranges, lengths.

botocore's own validator checks names, types and lengths of what has a minimum; the rest of what the models say is
checked here by walking the same shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

import botocore.session
from botocore.model import OperationModel, Shape
from botocore.validate import ParamValidator

from sandbox.clouds.sdk import Problem
from sandbox.clouds.wire import UNKNOWN, has_unknown

CLASSES = {
    "ASCII": r"\x00-\x7f",
    "Alnum": "A-Za-z0-9",
    "Print": r"\x20-\x7e",
    "L": "A-Za-z\u00aa-\uffdc",
    "N": "0-9",
    "Z": r"\s",
    "P": r"!-/:-@\[-`{-~",
    "S": "$+<=>^`|~",
    "M": "\u0300-\u036f",
}
"""Unicode categories that the models' patterns use and Python's `re` lacks, as ranges that hold the category."""

TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list, tuple),
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "blob": (bytes, str),
    "timestamp": (str, int, float, datetime),
}


@cache
def operation(service: str, name: str) -> OperationModel:
    """The model of one operation; raises botocore's OperationNotFoundError."""
    return _session().get_service_model(service).operation_model(name)


def problems(service: str, name: str, request: dict[str, Any]) -> list[Problem]:
    """All that the model refuses in a request; unknowns pass."""
    shape = operation(service, name).input_shape
    if shape is None:
        return [Problem(member, f"{name} takes nothing") for member in request]
    found = list(_walk(request, shape, path=""))
    if not found and not has_unknown(request):
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            found.append(Problem(name, report.generate_report()))
    return found


def _walk(value: Any, shape: Shape, *, path: str) -> Iterator[Problem]:
    if value is UNKNOWN:
        return
    fits: bool = isinstance(value, TYPES[shape.type_name])
    if not fits or (isinstance(value, bool) and shape.type_name != "boolean"):
        yield Problem(path, f"must be a {shape.type_name}, got {value!r}")
        return
    yield from _limits(value, shape, path=path)
    if shape.type_name == "structure":
        for missing in sorted(set(shape.required_members) - value.keys()):
            yield Problem(_join(path, missing), "is required and missing")
        for name, item in value.items():
            if name not in shape.members:
                yield Problem(_join(path, name), f"is not a member; there are {', '.join(sorted(shape.members))}")
            else:
                yield from _walk(item, shape.members[name], path=_join(path, name))
    elif shape.type_name == "list":
        for i, item in enumerate(value):
            yield from _walk(item, shape.member, path=f"{path}[{i}]")
    elif shape.type_name == "map":
        for key, item in value.items():
            yield from _walk(key, shape.key, path=_join(path, key))
            yield from _walk(item, shape.value, path=_join(path, key))


def _limits(value: Any, shape: Shape, *, path: str) -> Iterator[Problem]:
    said = shape.metadata
    if "enum" in said and value not in said["enum"]:
        yield Problem(path, f"must be one of {', '.join(said['enum'])}, got {value!r}")
    size = (
        value
        if isinstance(value, int | float)
        else len(value)
        if isinstance(value, str | bytes | list | dict)
        else None
    )
    if size is not None and shape.type_name not in ("timestamp", "boolean", "structure"):
        what = "" if isinstance(value, int | float) else "the length of "
        if "min" in said and size < said["min"]:
            yield Problem(path, f"{what}{value!r} is below the minimum {said['min']}")
        if "max" in said and size > said["max"]:
            yield Problem(path, f"{what}{_short(value)} is above the maximum {said['max']}")
    pattern = said.get("pattern")
    if pattern and isinstance(value, str) and not matches(pattern, value):
        yield Problem(path, f"{_short(value)} does not match the pattern {pattern}")


def matches(pattern: str, value: str) -> bool:
    """Whether a value matches a pattern of a service model: as a whole where the pattern has no anchors of its own."""
    compiled = _compiled(pattern)
    found = compiled.search(value) if pattern.startswith("^") or pattern.endswith("$") else compiled.fullmatch(value)
    return found is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The models' patterns are written for Java: Unicode categories, surrogate pairs, flags and dashes in other places."""
    plain = re.sub(
        r"\\p\{(\w+)\}",
        lambda found: CLASSES[found.group(1)] if found.group(1) in CLASSES else CLASSES[found.group(1)[0]],
        pattern,
    )
    plain = plain.replace(r"\uD800\uDC00-\uDBFF\uDFFF", "\\U00010000-\\U0010ffff")
    flags = re.IGNORECASE if "(?i)" in plain else 0
    return re.compile(plain.replace("(?i)", "").replace(r"\w-", r"\w\-"), flags)


@cache
def _session() -> Any:
    return botocore.session.get_session()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}…"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
