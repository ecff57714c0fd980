"""Rules that guard what the plan derives itself: no configuration breaks them, so the plan is broken by hand."""

from __future__ import annotations

import pytest

from planning.findings import Severity
from planning.plan import Plan, plan
from planning.rules import RULES, acknowledged
from planning.rules.context import Context
from planning.rules.rule import Rule
from planning.settings import load
from tests.support.configs import NOW, values


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    """The GPU environment as the rules see it."""
    import planning.gke_gpu as module

    seen: list[Context] = []

    def spy(found: Context) -> tuple[()]:
        seen.append(found)
        return ()

    monkeypatch.setattr(module, "check", spy)
    settings = load(values("gke-a4x-max"))
    assert isinstance(plan(settings, now=NOW), Plan)  # type: ignore[arg-type]
    return seen[0]


def rule(name: str) -> Rule:
    (found,) = [found for found in RULES if found.id == name]
    return found


def replaced(context: Context, **changes: object) -> Context:
    return Context(**{**context.__dict__, **changes})


def test_a_router_whose_block_is_not_the_engines_is_refused(context: Context):
    router = context.router.model_copy(update={"block_tokens": 16})
    assert list(rule("router-block").findings(context)) == []
    assert list(rule("router-block").findings(replaced(context, router=router)))


def test_roles_that_name_the_model_differently_are_refused(context: Context):
    prefill, decode = context.engines
    other = decode.workload.model_copy(update={"command": ("vllm", "serve", "/elsewhere")})
    changed = replaced(context, engines=(prefill, decode.__class__(**{**decode.__dict__, "workload": other})))
    assert list(rule("roles-model").findings(context)) == []
    assert list(rule("roles-model").findings(changed))


def test_shared_memory_that_fills_the_pod_is_refused(context: Context):
    prefill, decode = context.engines
    other = prefill.workload.model_copy(update={"shm_gib": prefill.workload.memory_gib})
    changed = replaced(context, engines=(prefill.__class__(**{**prefill.__dict__, "workload": other}), decode))
    assert list(rule("memory-limit").findings(context)) == []
    assert list(rule("memory-limit").findings(changed))


def test_what_both_roles_have_in_common_is_told_once(context: Context):
    found = list(rule("vllm-weight-filter").findings(context))
    assert len(found) == 1
    assert not found[0].what.startswith(("prefill", "decode"))


def test_every_rule_has_a_name_of_its_own_a_reason_a_remedy_and_a_source():
    assert len({found.id for found in RULES}) == len(RULES)
    for found in RULES:
        assert found.why
        assert found.remedy
        assert found.source


def test_findings_are_told_worst_first():
    import random

    found = [f for stack in ("eks-b300", "gke-tpu7x") for f in plan(load(values(stack)), now=NOW).findings]  # type: ignore[arg-type]
    random.Random(1).shuffle(found)
    order = [list(Severity).index(finding.severity) for finding in acknowledged(found, {})]
    assert order == sorted(order)
