"""What a generated Pulumi SDK says about its own resources and functions: property names, types, what is required.

The SDK's classes carry that as type hints; nothing here is written down by hand, and it holds for every provider.
"""

from __future__ import annotations

import collections.abc
import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pulumi
from pulumi import _types as pulumi_types

from sandbox.clouds.wire import UNKNOWN

SCALARS: Mapping[type, tuple[str, tuple[type, ...]]] = {
    str: ("a string", (str,)),
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
}


class UnknownTokenError(Exception):
    """The SDK has no such resource or function."""


@dataclass(frozen=True)
class Record:
    """An object with named properties: the hints by name as they are on the wire, and those that must be there."""

    properties: Mapping[str, Any]
    required: frozenset[str]


@dataclass(frozen=True)
class Schema:
    """A resource's inputs, and the hints of its outputs by name."""

    inputs: Record
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A value that the SDK's types refuse: where it is, and why."""

    path: str
    reason: str


@cache
def resource(package: str, token: str) -> Schema:
    """The schema of `aws:ec2/vpc:Vpc` in package `pulumi_aws`."""
    module, name = _module(package, token)
    made = getattr(module, name, None)
    if made is None or getattr(made, "pulumi_type", None) != token:
        raise UnknownTokenError(f"{package} has no resource {token}")
    # A nested type may have the arguments' usual name; the SDK then calls them InitArgs.
    arguments = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
    return Schema(inputs=record(arguments), outputs=pulumi_types.resource_types(made))


@cache
def provider(package: str) -> Record:
    """The provider's own configuration."""
    return record(importlib.import_module(f"{package}.provider").ProviderArgs)


@cache
def function(package: str, token: str) -> tuple[Record, Mapping[str, Any]]:
    """Arguments of a function, and the hints of its results by name on the wire."""
    module, name = _module(package, token)
    call = getattr(module, _snake(name), None)
    result = getattr(module, f"{name[0].upper()}{name[1:]}Result", None)
    if call is None or result is None:
        raise UnknownTokenError(f"{package} has no function {token}")
    taken = re.findall(r"__args__\['(\w+)'\] = (\w+)", inspect.getsource(call))
    hints = typing.get_type_hints(call, vars(module))
    signature = inspect.signature(call).parameters
    required = frozenset(wire for wire, own in taken if signature[own].default is inspect.Parameter.empty)
    results = dict(pulumi_types._types_from_py_properties(result))
    return Record({wire: hints[own] for wire, own in taken}, required), results


@cache
def record(arguments: type) -> Record:
    """The properties of a generated input or output class."""
    if pulumi_types.is_input_type(arguments):
        names = pulumi_types.input_type_py_to_pulumi_names(arguments)
        hints = pulumi_types.input_type_types(arguments)
    elif pulumi_types.is_output_type(arguments):
        names = pulumi_types._py_to_pulumi_names_from_py_properties(arguments)
        hints = pulumi_types.output_type_types(arguments)
    else:
        names = pulumi_types._py_to_pulumi_names_from_py_properties(arguments)
        hints = pulumi_types._types_from_py_properties(arguments)
    signature = inspect.signature(arguments).parameters
    required = frozenset(
        wire for own, wire in names.items() if own in signature and signature[own].default is inspect.Parameter.empty
    )
    return Record(hints, required)


def shape(hint: Any) -> tuple[str, Any]:
    """What a hint stands for: ('list', item), ('map', value), ('record', class), ('scalar', type) or ('any', None)."""
    hint = _unwrapped(hint)
    origin = typing.get_origin(hint)
    if origin in (list, collections.abc.Sequence):
        return "list", typing.get_args(hint)[0]
    if origin in (dict, collections.abc.Mapping):
        return "map", typing.get_args(hint)[1]
    if hint in SCALARS:
        return "scalar", hint
    if isinstance(hint, type) and (pulumi_types.is_input_type(hint) or pulumi_types.is_output_type(hint)):
        return "record", hint
    return "any", None


def problems(values: Mapping[str, Any], wanted: Record, *, path: str = "") -> Iterator[Problem]:
    """Everything in `values` that the types refuse: unknown names, missing ones, wrong types."""
    for name in sorted(wanted.required - values.keys()):
        yield Problem(_join(path, name), "is required and missing")
    for name, value in values.items():
        if name not in wanted.properties:
            near = ", ".join(sorted(wanted.properties))
            yield Problem(_join(path, name), f"is not a property the SDK knows; it knows {near}")
        else:
            yield from _value_problems(value, wanted.properties[name], path=_join(path, name))


def _value_problems(value: Any, hint: Any, *, path: str) -> Iterator[Problem]:
    if value is None or value is UNKNOWN:
        return
    kind, inner = shape(hint)
    if kind == "scalar":
        what, taken = SCALARS[inner]
        if not isinstance(value, taken) or (isinstance(value, bool) and inner is not bool):
            yield Problem(path, f"must be {what}, got {value!r}")
    elif kind == "list":
        if not isinstance(value, list):
            yield Problem(path, f"must be a list, got {value!r}")
        else:
            for i, item in enumerate(value):
                yield from _value_problems(item, inner, path=f"{path}[{i}]")
    elif kind in ("map", "record"):
        if not isinstance(value, dict):
            yield Problem(path, f"must be an object, got {value!r}")
        elif kind == "record":
            yield from problems(value, record(inner), path=path)
        else:
            for name, item in value.items():
                yield from _value_problems(item, inner, path=_join(path, name))


def _unwrapped(hint: Any) -> Any:
    """The plain type in Input[…], Optional[…] and Annotated[…]: the first of a union that is no wrapper."""
    while typing.get_origin(hint) is typing.Annotated or _is_union(hint):
        arguments = [each for each in typing.get_args(hint) if each is not type(None)]
        plain = [
            each for each in arguments if typing.get_origin(each) not in (pulumi.Output, collections.abc.Awaitable)
        ]
        hint = (plain or arguments)[0]
    return hint


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _module(package: str, token: str) -> tuple[Any, str]:
    try:
        _, where, name = token.split(":")
        folder, _, file = where.partition("/")
        parent = ".".join([package, *([] if folder == "index" else [folder.replace("-", "")])])
        # The SDK's packages load when an attribute is first read. A module imported before that would load its package
        # while half-made itself, and would be missing from it for good.
        hasattr(importlib.import_module(parent), "_utilities")
        return importlib.import_module(f"{parent}.{_snake(file or name)}"), name
    except (ValueError, ImportError) as error:
        raise UnknownTokenError(f"{package} has no {token}") from error


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
