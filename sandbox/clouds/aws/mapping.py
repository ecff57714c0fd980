"""Between the SDK's properties (`vpcId`) and the members of an API's shapes (`VpcId`), driven by both sides' own types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.model import Shape

from sandbox.clouds import sdk
from sandbox.clouds.wire import UNKNOWN


class UnmappedError(Exception):
    """A property that no member of the request takes: the table is not complete."""


def request(
    inputs: Mapping[str, Any], shape: Shape, *, names: Mapping[str, str], skip: Iterable[str] = (), path: str = ""
) -> dict[str, Any]:
    """The request that these inputs ask for.

    names: property path → member, where the two don't agree by name (case, plural). skip: properties that another call
    takes. Raises UnmappedError for a property that is in neither and has no member of its name.
    """
    made = {}
    for name, value in inputs.items():
        below = f"{path}.{name}" if path else name
        if below in skip or value is None:
            continue
        member = names.get(below) or _member(name, shape.members)
        if member is None:
            raise UnmappedError(f"{below} has no member in {shape.name} and no call of its own")
        made[member] = _to_member(value, shape.members[member], names=names, skip=skip, path=below)
    return made


def _to_member(value: Any, shape: Shape, *, names: Mapping[str, str], skip: Iterable[str], path: str) -> Any:
    kind = shape.type_name
    if value is UNKNOWN:
        return value
    if kind == "structure":
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return request(value, shape, names=names, skip=skip, path=path) if isinstance(value, dict) else value
    if kind == "list":
        if isinstance(value, dict):
            pairs = tag_members(shape.member)
            if pairs:
                return [{pairs[0]: key, pairs[1]: item} for key, item in sorted(value.items())]
        items = value if isinstance(value, list) else [value]
        return [_to_member(item, shape.member, names=names, skip=skip, path=path) for item in items]
    if kind == "map":
        return {k: _to_member(v, shape.value, names=names, skip=skip, path=path) for k, v in value.items()}
    if kind == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value, value)
    if kind in ("integer", "long") and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    if kind == "blob" and isinstance(value, str):
        return value.encode()
    if kind == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def tag_members(shape: Shape) -> tuple[str, str] | None:
    """The names of key and value when the shape is a tag."""
    if shape.type_name == "structure":
        for pair in (("Key", "Value"), ("TagKey", "TagValue"), ("key", "value")):
            if pair[0] in shape.members and pair[1] in shape.members:
                return pair
    return None


def properties(
    found: Mapping[str, Any], hints: Mapping[str, Any], *, names: Mapping[str, str], path: str = ""
) -> dict[str, Any]:
    """What a response says of a resource's properties; those it does not mention are left out.

    names: property path → member; an empty member means that the response does not say it.
    """
    made = {}
    for name, hint in hints.items():
        below = f"{path}.{name}" if path else name
        member = names[below] if below in names else _member(name, found)
        if member and member in found and found[member] is not None:
            value = _to_property(found[member], hint, names=names, path=below)
            if value is not None:
                made[name] = value
    return made


def _to_property(value: Any, hint: Any, *, names: Mapping[str, str], path: str) -> Any:
    kind, inner = sdk.shape(hint)
    if kind == "record":
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, Mapping):
            return None
        return properties(value, sdk.record(inner).properties, names=names, path=path)
    if kind == "list":
        items = value if isinstance(value, list) else [value]
        return [_to_property(item, inner, names=names, path=path) for item in items]
    if kind == "map":
        return tags(value) if isinstance(value, list) else dict(value)
    if kind == "scalar" and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, bytes):
        return value.decode()
    if inner is str and isinstance(value, bool):
        return "true" if value else "false"
    if inner is str and isinstance(value, int | float):
        return str(value)
    if inner is int and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    if inner is bool and value in ("true", "false"):
        return value == "true"
    if inner is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def tags(listed: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Tags as a map."""
    return {
        (tag.get("Key") or tag.get("TagKey") or tag.get("key") or ""): (
            tag.get("Value") or tag.get("TagValue") or tag.get("value") or ""
        )
        for tag in listed
    }


def settled(wanted: Any, found: Any) -> Any:
    """The input as the program wrote it when the cloud holds the same, else what the cloud holds.

    A cloud fills in what was not said and orders sets its own way: neither is a difference.
    """
    return wanted if holds(found, wanted) else found


def holds(found: Any, wanted: Any) -> bool:
    """Whether what the cloud holds has all that was wanted."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and holds(found[name], item) for name, item in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        left = list(found)
        for item in wanted:
            match = next((i for i, other in enumerate(left) if holds(other, item)), None)
            if match is None:
                return False
            left.pop(match)
        return not left
    return bool(
        str(wanted).lower() == str(found).lower()
        if isinstance(wanted, bool) or isinstance(found, bool)
        else wanted == found
    )


def completed(wanted: Any, found: Any) -> Any:
    """The input with what the cloud filled in, for the outputs."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {**found, **{name: completed(item, found.get(name)) for name, item in wanted.items()}}
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = zip(wanted, found, strict=True)
        return [completed(one, other) if holds(other, one) else one for one, other in pairs]
    return wanted


def _member(name: str, members: Iterable[str]) -> str | None:
    plain = name.lower()
    forms = (plain, plain.removesuffix("s"), f"{plain}s", re.sub("ies$", "y", plain), re.sub("y$", "ies", plain))
    by_lower = {member.lower(): member for member in members}
    return next((by_lower[form] for form in forms if form in by_lower), None)
