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
)

from policies import aws, capacity_block, workloads
from policies.rule import Rule


def policy(rule: Rule) -> ResourceValidationPolicy:
    """A rule as Pulumi takes it."""

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for text in rule.violations(args.resource_type, args.props):
            report(text)

    return ResourceValidationPolicy(name=rule.name, description=rule.description, validate=validate)


PolicyPack(
    name="llm-serving",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[policy(rule) for rule in (*aws.RULES, *capacity_block.RULES, *workloads.RULES)],
)
