"""All rules of the pack. No Pulumi: tests and reviews can apply them to resources without a server."""

from __future__ import annotations

from collections.abc import Sequence

from policies import aws, capacity_block, network, pods, workloads
from policies.rule import Resource, Rule, StackRule

RULES: tuple[Rule, ...] = (*aws.RULES, *capacity_block.RULES, *pods.RULES, *workloads.RULES)
STACK_RULES: tuple[StackRule, ...] = network.STACK_RULES


def violations(resources: Sequence[Resource]) -> list[str]:
    """What every rule finds wrong with a stack's resources: sentence and rule."""
    single = [
        f"{text} [{rule.name}]"
        for each in resources
        for rule in RULES
        for text in rule.violations(each.type, each.properties)
    ]
    return [*single, *(f"{text} [{rule.name}]" for rule in STACK_RULES for text in rule.check(resources))]
