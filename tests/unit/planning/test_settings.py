"""The schema: what Pulumi hands over, what a stack's file says, what the schema promises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from planning.findings import ConfigurationError
from planning.settings import TARGETS, decode, load, load_stack_file, model_of, schema
from tests.support.configs import FILLED, ROOT, example, values

STACKS = sorted(FILLED)


def as_pulumi_hands_it_over(config: dict[str, Any]) -> dict[str, str]:
    """Pulumi's own map: strings as they are, everything else as JSON, keys with the namespace."""
    return {
        f"llm-serving:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in config.items()
    }


@pytest.mark.parametrize("stack", STACKS)
def test_what_pulumi_hands_over_is_what_the_file_says(stack: str):
    config = values(stack)
    assert load(decode(as_pulumi_hands_it_over(config))) == load(config)


def test_config_of_other_programs_is_not_ours():
    assert decode({"aws:region": "us-east-1", "llm-serving:target": "dev"}) == {"target": "dev"}


@pytest.mark.parametrize("stack", STACKS)
def test_an_example_is_refused_with_an_instruction_for_each_placeholder(stack: str):
    with pytest.raises(ConfigurationError) as caught:
        load(example(stack))
    rules = {found.rule for found in caught.value.findings}
    assert rules == {"settings-placeholder"}
    placeholders = [path for path in FILLED[stack] if path != "capacity_block.facts"]
    assert sorted(found.what.split()[0] for found in caught.value.findings) == sorted(placeholders)
    assert all(found.remedy for found in caught.value.findings)


def test_settings_can_not_be_changed():
    settings = load(values("eks-b300"))
    with pytest.raises(ValueError, match="frozen"):
        settings.region = "us-east-1"  # type: ignore[union-attr]


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for inner in _arguments(field.annotation):
            yield from _models(inner, seen)


def _arguments(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _arguments(argument)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_setting_is_described_or_describes_itself_and_every_model_is_frozen(target: str):
    for model in _models(model_of(target), set()):
        assert model.model_config.get("frozen")
        assert model.model_config.get("extra") == "forbid"
        assert model.__doc__
        for name, field in model.model_fields.items():
            literal = "Literal" in str(field.annotation)
            described = field.description or literal or any(inner.__doc__ for inner in _arguments(field.annotation))
            assert described, f"{model.__name__}.{name}"


def test_the_schema_covers_every_target():
    found = schema()
    assert set(found["discriminator"]["mapping"]) == set(TARGETS)
    for reference in found["discriminator"]["mapping"].values():
        assert reference.removeprefix("#/$defs/") in found["$defs"]
    assert json.loads(json.dumps(found)) == found


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_stack_file(path)
    return str(caught.value)


def test_a_missing_stack_is_told_the_nearest_one(tmp_path: Path):
    assert "Did you mean eks-b300?" in refused(ROOT / "Pulumi.eks-b30.yaml")
    assert "there is no Pulumi.x.yaml" in refused(tmp_path / "Pulumi.x.yaml")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("config: [", "is not YAML"),
        ("config: {llm-serving:target: dev}\nconfig: {}", "the key config stands twice in the map at line 1"),
        (
            "config:\n  x: 1\n  llm-serving:nodes: {count: 1, count: 2}",
            "the key count stands twice in the map at line 3",
        ),
        ("config:\n  - a", "has no map `config`"),
        ("just text", "has no map `config`"),
        ("", "has no map `config`"),
        ("config: {}", "target is missing"),
        ("config: {aws:region: us-east-1}", "target is missing"),
        ("config: {llm-serving:target: !!binary aGk=}", "target names no environment"),
        ("config: {llm-serving:target: {a: 1}}", "target names no environment"),
    ],
)
def test_a_stack_file_that_is_not_one_is_told_so(tmp_path: Path, content: str, told: str):
    path = tmp_path / "Pulumi.bad.yaml"
    path.write_text(content, encoding="utf-8")
    assert told in refused(path)


def test_a_stack_file_that_is_not_text_is_told_so(tmp_path: Path):
    path = tmp_path / "Pulumi.bad.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "can't be read" in refused(path)


def test_yaml_dates_are_times_too(tmp_path: Path):
    text = (ROOT / "Pulumi.eks-b300.yaml").read_text(encoding="utf-8")
    filled = text.replace("<a bucket name that nobody has yet>", "kimi-weights").replace(
        "<cr-… of your capacity block>", "cr-0123456789abcdef0"
    )
    path = tmp_path / "Pulumi.eks-b300.yaml"
    path.write_text(filled.replace("    # facts:", "    facts:").replace("    #   ", "      "), encoding="utf-8")
    settings = load_stack_file(path)
    assert settings.capacity_block.facts.end.isoformat() == "2026-12-17T11:30:00+00:00"  # type: ignore[union-attr]
