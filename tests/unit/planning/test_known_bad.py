"""Known-bad configurations: each ends in the finding that says what to do, never in a traceback."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from planning.findings import ConfigurationError, Finding, Severity
from planning.plan import plan
from planning.rules import BLOCK_RULES, RULES
from planning.settings import load
from tests.support.configs import FILLED, NOW, ROOT, values

CASES: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/unit/planning/known_bad.yaml").read_text(encoding="utf-8"))


def findings(stack: str, changes: dict[str, Any]) -> tuple[Finding, ...]:
    """What the configuration is told, whether the schema or the plan says it."""
    try:
        return plan(load(values(stack, changes)), now=NOW).findings  # type: ignore[arg-type]
    except ConfigurationError as error:
        return error.findings


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_known_bad_configuration_is_told_what_is_wrong_and_what_to_do(case: dict[str, Any]):
    told = {found.rule: found for found in findings(case["stack"], case["set"])}
    assert case["expect"] in told, "\n".join(found.line() for found in told.values())
    found = told[case["expect"]]
    assert found.severity == Severity(case.get("as", "error"))
    assert found.remedy
    assert found.source
    assert "\n" not in found.line()


def test_there_are_enough_known_bad_configurations_and_each_has_an_origin():
    assert len(CASES) >= 60
    assert all(case["from"] for case in CASES)
    assert len({case["name"] for case in CASES}) == len(CASES)


def test_every_rule_that_refuses_or_warns_has_a_configuration_that_it_catches():
    caught = {case["expect"] for case in CASES}
    silent = {rule.id for rule in RULES if rule.severity is not Severity.NOTE} | set(BLOCK_RULES)
    # These guard what the plan derives itself, and no configuration can break them: see the tests of the rules.
    assert silent - caught == {"router-block", "roles-model", "memory-limit"}


@pytest.mark.parametrize("stack", sorted(FILLED))
def test_an_example_config_with_its_placeholders_filled_in_has_no_error(stack: str):
    assert [found.line() for found in findings(stack, {}) if found.severity is Severity.ERROR] == []


def test_all_mistakes_are_told_at_once():
    told = findings("eks-b300", {"region": "(missing)", "regon": "x", "model.revision": "main", "nodes.count": "two"})
    assert {found.rule for found in told} == {
        "settings-missing",
        "settings-unknown-key",
        "settings-revision",
        "settings-type",
    }


def test_a_misspelt_key_is_told_the_right_one():
    (found,) = findings("eks-b300", {"weights.bukket": "x-y-z"})
    assert "Did you mean bucket?" in found.line()


def test_an_acknowledged_error_becomes_a_note_with_the_reason():
    changes = {"engine.image": "lmsysorg/sglang:dev-kimi-k31-pro", "acknowledge": {"image-digest": "a throw-away test"}}
    (found,) = [found for found in findings("eks-b300", changes) if found.rule == "image-digest"]
    assert found.severity is Severity.NOTE
    assert "a throw-away test" in found.line()
