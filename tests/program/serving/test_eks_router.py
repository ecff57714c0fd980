"""The router's rights, by which picker it is."""

from __future__ import annotations

import pytest

from stacks.render import record
from tests.support.eks import settings

CHART_GROUPS = {
    # llm-d-router, config/charts/llm-d-router-standalone/templates/rbac.yaml
    "llm-d": {"inference.networking.x-k8s.io", "llm-d.ai"},
    # gateway-api-inference-extension v1.5.0, config/charts/standalone/templates/rbac.yaml
    "inference-extension": {"inference.networking.x-k8s.io"},
}


@pytest.mark.parametrize("router", CHART_GROUPS)
def test_a_picker_may_watch_what_its_own_chart_lets_it_watch_and_change_nothing(router: str) -> None:
    registered = record(settings(router=router), stack="test")
    rules = [
        rule
        for each in registered
        if each.type == "kubernetes:rbac.authorization.k8s.io/v1:Role"
        for rule in each.inputs["rules"]
        if "inferenceobjectives" in rule["resources"]
    ]
    assert {group for rule in rules for group in rule["apiGroups"]} == CHART_GROUPS[router]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
