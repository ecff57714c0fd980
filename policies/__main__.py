"""Starts the pack: every rule as a mandatory policy. Runs in policies/.venv, started by Pulumi."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from policies import pack
from policies.rule import Resource, Rule, StackRule

asked_for: dict[str, Resource] = {}
"""Every resource of this run as the program asks for it, by URN. What Pulumi hands to stack policies is what providers made of
it, and that is nothing at the preview of a cluster that does not exist yet."""


def policy(rule: Rule) -> ResourceValidationPolicy:
    """A rule as Pulumi takes it."""

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        asked_for[args.urn] = Resource(type=args.resource_type, properties=args.props)
        for text in rule.violations(args.resource_type, args.props):
            report(text)

    return ResourceValidationPolicy(name=rule.name, description=rule.description, validate=validate)


def stack_policy(rule: StackRule) -> StackValidationPolicy:
    """A rule about a whole stack as Pulumi takes it."""

    def validate(_: StackValidationArgs, report: ReportViolation) -> None:
        for text in rule.check([*asked_for.values()]):
            report(text)

    return StackValidationPolicy(name=rule.name, description=rule.description, validate=validate)


PolicyPack(
    name="llm-serving",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[*map(policy, pack.RULES), *map(stack_policy, pack.STACK_RULES)],
)
