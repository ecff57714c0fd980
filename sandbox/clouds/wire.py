"""Values on the wire of Pulumi's provider protocol: protobuf structs with sentinels for unknowns and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from google.protobuf import json_format, struct_pb2

UNKNOWN_ON_WIRE = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"
"""Sentinels of the protocol (pulumi/pulumi, sdk/go/common/resource/plugin/rpc.go)."""


class Unknown:
    """A value that only exists after a resource that is still to be made."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class WireError(Exception):
    """A value that a simulated cloud can't take, such as an asset; the message says which."""


def decode(struct: struct_pb2.Struct) -> tuple[dict[str, Any], frozenset[str]]:
    """Plain values (whole numbers as int, unknowns as UNKNOWN), and the names of the properties that hold a secret."""
    secrets: set[str] = set()
    values = {}
    for name, value in json_format.MessageToDict(struct).items():
        values[name] = _plain(value, on_secret=partial(secrets.add, name))
    return values, frozenset(secrets)


def encode(values: Mapping[str, Any], *, secrets: frozenset[str] = frozenset()) -> struct_pb2.Struct:
    """The struct of these values; a property without a value is left out."""
    struct = struct_pb2.Struct()
    for name, value in values.items():
        if value is not None:
            ready = _ready(value)
            struct.update({name: {SIGNATURE_KEY: SECRET_SIGNATURE, "value": ready} if name in secrets else ready})
    return struct


def has_unknown(value: Any) -> bool:
    """Whether an unknown is anywhere in the value."""
    if isinstance(value, Mapping):
        return any(map(has_unknown, value.values()))
    return any(map(has_unknown, value)) if isinstance(value, list) else value is UNKNOWN


def _plain(value: Any, *, on_secret: Callable[[], None]) -> Any:
    if value == UNKNOWN_ON_WIRE:
        return UNKNOWN
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item, on_secret=on_secret) for item in value]
    if not isinstance(value, dict):
        return value
    signature = value.get(SIGNATURE_KEY)
    if signature is None:
        return {key: _plain(item, on_secret=on_secret) for key, item in value.items()}
    if signature != SECRET_SIGNATURE:
        raise WireError("assets, archives and resource references are not among the values that this cloud takes")
    on_secret()
    return _plain(value["value"], on_secret=on_secret)


def _ready(value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN_ON_WIRE
    if isinstance(value, Mapping):
        return {str(key): _ready(item) for key, item in value.items() if item is not None}
    return [_ready(item) for item in value] if isinstance(value, list | tuple) else value
