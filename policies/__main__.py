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


def policy(rule: Rule) -> ResourceValidationPolicy:
    """A rule as Pulumi takes it."""

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for text in rule.violations(args.resource_type, args.props):
            report(text)

    return ResourceValidationPolicy(name=rule.name, description=rule.description, validate=validate)


def stack_policy(rule: StackRule) -> StackValidationPolicy:
    """A rule about a whole stack as Pulumi takes it."""

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for text in rule.check([Resource(type=each.resource_type, properties=each.props) for each in args.resources]):
            report(text)

    return StackValidationPolicy(name=rule.name, description=rule.description, validate=validate)


PolicyPack(
    name="llm-serving",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[*map(policy, pack.RULES), *map(stack_policy, pack.STACK_RULES)],
)
