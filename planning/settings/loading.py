"""From the stack's values to typed settings; everything that is wrong becomes a finding, all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from planning.findings import ConfigurationError, Finding, Severity
from planning.settings.base import FULL_COMMIT

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

NAMESPACE = "llm-serving"
PLACEHOLDER = re.compile(r"<[^<>]*>")
SHOWN = 60
"""Longest value that a finding repeats, in characters."""


def refusal(rule: str, what: str, *, value: object = "", why: str = "", remedy: str = "") -> Finding:
    """A finding of the schema: an error, with the value cut to a readable length."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return Finding(
        rule=f"settings-{rule}",
        severity=Severity.ERROR,
        what=what,
        value=text if len(text) <= SHOWN else text[: SHOWN - 1] + "…",
        why=why,
        remedy=remedy,
        source="planning.settings",
    )


def suggestion(word: str, known: Iterator[str] | list[str]) -> str:
    """The known word that is meant, or all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else "Known: " + ", ".join(names)


def load_model(model: type[BaseModel], values: Mapping[str, object]) -> BaseModel:
    """Values as YAML or JSON gave them, as `model`; ConfigurationError with every finding when they don't fit."""
    try:
        text = json.dumps(values, default=_plain)
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigurationError(
            [
                refusal(
                    "form",
                    "the values can't be read",
                    why=str(error),
                    remedy="Use plain YAML: maps, lists, strings, numbers",
                )
            ]
        ) from None
    values = json.loads(text)
    findings = [
        _placeholder(model, path, text) for path, text in _strings(values) if PLACEHOLDER.fullmatch(text.strip())
    ]
    open_paths = {finding.what.split(" ", 1)[0] for finding in findings}
    settings = None
    try:
        settings = model.model_validate_json(text)
    except ValidationError as error:
        for detail in error.errors():
            found = _finding(model, detail, values)
            if not any(found.what.startswith(path) for path in open_paths):
                findings.append(found)
    except ValueError as error:
        findings.append(refusal("form", "the values can't be read", why=str(error), remedy="Use plain YAML"))
    if findings or settings is None:
        raise ConfigurationError(findings)
    return settings


def _plain(value: object) -> object:
    """What YAML knows and JSON does not: dates and times, sets."""
    isoformat = getattr(value, "isoformat", None)
    if isoformat:
        text: str = isoformat()
        return text
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


def _strings(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the configuration"


def _placeholder(model: type[BaseModel], path: tuple[str | int, ...], text: str) -> Finding:
    field = _field(model, path)
    extra = field.json_schema_extra if field else None
    remedy = str(extra.get("how", "")) if isinstance(extra, dict) else ""
    if not remedy:
        remedy = f"Put in your own value: {field.description if field and field.description else text.strip('<> ')}"
    return refusal(
        "placeholder",
        f"{_dotted(path)} still has the example's placeholder",
        value=text,
        remedy=remedy,
        why="only you know this value",
    )


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)


def _field(model: type[BaseModel], path: tuple[str | int, ...]) -> FieldInfo | None:
    """The field that a path leads to, through whichever member of a union has it."""
    names = [part for part in path if isinstance(part, str)]
    candidates = [model]
    found: FieldInfo | None = None
    for name in names:
        fields = [candidate.model_fields[name] for candidate in candidates if name in candidate.model_fields]
        if not fields:
            return found
        found = fields[0]
        candidates = [inner for field in fields for inner in _models(field.annotation)]
    return found


def _real_path(loc: tuple[int | str, ...], values: object) -> tuple[str | int, ...]:
    """pydantic's location without the union tags that it puts between the keys."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(values, dict):
            if part in values:
                values = values[part]
            elif not last:
                continue
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            values = values[part]
        elif isinstance(part, str):
            continue
        path.append(part)
    return tuple(path)


def _owner_fields(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Names that are known where an unknown key was found."""
    candidates = [model]
    for part in loc[:-1]:
        inner = [
            kind
            for candidate in candidates
            if isinstance(part, str) and part in candidate.model_fields
            for kind in _models(candidate.model_fields[part].annotation)
        ]
        tagged = [kind for kind in candidates if part in _tags(kind)]
        candidates = inner or tagged or candidates
    return sorted({name for candidate in candidates for name in candidate.model_fields})


def _tags(model: type[BaseModel], discriminator: str | None = None) -> tuple[object, ...]:
    """Values that choose the model in a union; of any of its literal fields where the discriminator is not known."""
    return tuple(
        value
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is Literal and discriminator in (None, name)
        for value in get_args(field.annotation)
    )


WANTED = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map of settings",
    "model_attributes_type": "a map of settings",
}


def _finding(model: type[BaseModel], detail: ErrorDetails, values: object) -> Finding:
    kind, loc = detail["type"], detail["loc"]
    path = _real_path(loc, values)
    name = _dotted(path)
    given = detail.get("input", "")
    context = detail.get("ctx", {})
    field = _field(model, path)
    description = (field.description or "") if field else ""
    if kind == "problem":
        prefix = f"{name}: " if path else ""
        return refusal("value", prefix + context["what"], why=context["why"], remedy=context["remedy"])
    if kind == "missing":
        return refusal("missing", f"{name} is missing", why="it has no default", remedy=_set(field, name, description))
    if kind == "extra_forbidden":
        known = _owner_fields(model, loc)
        return refusal("unknown-key", f"{name} is not a setting", remedy=suggestion(str(path[-1]), known))
    if kind in WANTED:
        return refusal(
            "type",
            f"{name} is of the wrong type",
            value=given,
            remedy=f"Give {WANTED[kind]}: {description}".rstrip(": "),
        )
    if kind == "literal_error":
        return refusal(
            "choice", f"{name} is not one of the choices", value=given, remedy=f"Use one of {context['expected']}"
        )
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = str(context["discriminator"]).strip("'")
        kinds = [str(kind) for member in _models(field.annotation) for kind in _tags(member, tag)] if field else []
        remedy = f"Use one of {', '.join(kinds)}"
        return refusal("choice", f"{name}.{tag} must say which kind it is", value=context.get("tag", ""), remedy=remedy)
    if kind == "string_pattern_mismatch" and context.get("pattern") == FULL_COMMIT:
        return refusal(
            "revision",
            f"{name} is not a full commit",
            value=given,
            why="a branch or tag moves, and then no one knows what was staged",
            remedy="Give the 40 hex digits of the commit; the hub's page of the repository shows them under History",
        )
    message = detail["msg"]
    return refusal(
        "value", f"{name} can't be used", value=given, why=message[:1].lower() + message[1:], remedy=description
    )


def _set(field: FieldInfo | None, name: str, description: str) -> str:
    extra = field.json_schema_extra if field else None
    if isinstance(extra, dict) and extra.get("how"):
        return f"Set it. {extra['how']}"
    return f"Set it: {description}" if description else f"Set {name}"


def read_stack_file(path: Path) -> dict[str, object]:
    """The values of the program's own namespace in a Pulumi.<stack>.yaml. ConfigurationError when there is no such file."""
    import yaml  # imported here: a plan of given values needs no YAML

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([_missing_stack(path, error)]) from None
    try:
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            [refusal("yaml", f"{path.name} is not YAML", why=reason, remedy="Mend the line that the message names")]
        ) from None
    config = content.get("config", {}) if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise ConfigurationError(
            [
                refusal(
                    "yaml", f"{path.name} has no map `config`", remedy=f"Start it with `config:` and keys {NAMESPACE}:…"
                )
            ]
        )
    prefix = NAMESPACE + ":"
    return {str(key).removeprefix(prefix): value for key, value in config.items() if str(key).startswith(prefix)}


def _refuse_repeated_keys(node: Any) -> None:
    """ValueError where a map has a key twice: YAML forbids it, PyYAML keeps the last one, and the first would be lost unseen."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(getattr(node, "value", None), list):
            continue
        seen.add(id(node))
        pairs = [item for item in node.value if isinstance(item, tuple)]
        keys = [key.value for key, _ in pairs if isinstance(key.value, str) and key.value != "<<"]
        for repeated in {key for key in keys if keys.count(key) > 1}:
            raise ValueError(f"the key {repeated} stands twice in the map at line {node.start_mark.line + 1}")
        waiting += [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]


def _missing_stack(path: Path, error: Exception) -> Finding:
    stacks = sorted(p.name.split(".", 1)[1].removesuffix(".yaml") for p in path.parent.glob("Pulumi.*.yaml"))
    name = path.name.removeprefix("Pulumi.").removesuffix(".yaml")
    if not isinstance(error, FileNotFoundError):
        return refusal(
            "stack-file", f"{path.name} can't be read", why=str(error), remedy="Save it as UTF-8 text that you may read"
        )
    remedy = suggestion(name, stacks) if stacks else "Copy one of the example configs"
    return refusal("stack-file", f"there is no {path.name}", remedy=remedy)
