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
    assert silent - caught == {"router-block", "router-config", "roles-model", "memory-limit"}


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


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("eks-b300", {"weights.store": "fsx", "cluster.version": "1.35", "cluster.release_version": None}),
    ("eks-b300", {"weights.store": "efs"}),
    ("eks-b300", {"nodes.count": 2, "capacity_block.facts.count": 2}),
    ("eks-b300", {"gpu_allocation": "device-plugin", "router": "inference-extension"}),
    ("eks-b300", {"monitoring": {"kind": "amp"}, "cluster.control_plane": "eks-component"}),
    ("eks-b300", {"model.served_name": "ml-team/kimi-k3-1-pro", "engine.flags.max-running-requests": 32}),
    ("eks-b300", {"engine.flags.context-length": "1Mi"}),
    ("eks-b300", {"capacity_block.facts": "(missing)"}),
    (
        "eks-b300",
        {
            "gateway": {
                "exposure": "internet-facing",
                "auth": {"kind": "api-keys", "secret": {"name": "keys", "key": "keys"}},
                "callers": ["0.0.0.0/0"],
                "port": 443,
                "certificate_arn": "arn:aws:acm:us-west-2:123456789012:certificate/abc",
            }
        },
    ),
    ("gke-a4x-max", {"tier": {"kind": "native", "gib_per_rank": 100}, "orchestration": "disaggregated-set"}),
    ("gke-a4x-max", {"prefill_shape.replicas": 2}),
    ("gke-tpu7x", {"replicas": 4}),
    ("gke-tpu7x", {"engine.flags.enable-hierarchical-cache": None, "engine.flags.hicache-ratio": None}),
]


@pytest.mark.parametrize(("stack", "changes"), GOOD, ids=[f"{stack} {list(change)}" for stack, change in GOOD])
def test_a_configuration_that_is_meant_to_work_is_not_refused(stack: str, changes: dict[str, Any]):
    assert [found.line() for found in findings(stack, changes) if found.severity is Severity.ERROR] == []
