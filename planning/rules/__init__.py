"""Rules: what engines, routers and clouds refuse or get wrong, checked before anything is created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from planning.findings import Finding, Severity
from planning.rules import bugs, common, eks, gke, memory, roles, sglang, vllm
from planning.rules.context import Context
from planning.rules.rule import Rule

RULES: tuple[Rule, ...] = tuple(
    rule for topic in (common, sglang, vllm, roles, memory, bugs, eks, gke) for rule in topic.RULES.all
)
"""Every rule, in the order in which they are reported."""

BLOCK_RULES = (
    "block-state",
    "block-over",
    "block-type",
    "block-count",
    "block-region",
    "block-local-zone",
    "block-zone",
    "block-too-short",
    "block-tight",
    "block-late",
)
"""Rules of planning.block, which judges a capacity block by itself."""


def check(context: Context) -> tuple[Finding, ...]:
    """Every finding of every rule."""
    return tuple(finding for rule in RULES for finding in rule.findings(context))


def acknowledged(findings: Iterable[Finding], reasons: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings, worst first; those that the user has decided to live with as notes that carry the reason."""
    known = {rule.id for rule in RULES} | set(BLOCK_RULES)
    found = [_acknowledge(finding, reasons.get(finding.rule)) for finding in findings]
    found += [_unknown(name, known) for name in reasons if name not in known]
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def _acknowledge(finding: Finding, reason: str | None) -> Finding:
    if reason is None or finding.severity is Severity.NOTE:
        return finding
    return finding.model_copy(
        update={"severity": Severity.NOTE, "remedy": f"Acknowledged: {reason}", "what": finding.what}
    )


def _unknown(name: str, known: set[str]) -> Finding:
    near = get_close_matches(name, sorted(known), n=1)
    return Finding(
        rule="acknowledge-unknown",
        severity=Severity.WARNING,
        what="acknowledge names a rule that does not exist",
        value=name,
        why="it acknowledges nothing",
        remedy=f"Did you mean {near[0]}?" if near else "Take it out; every finding ends with its rule's name",
        source="planning.rules",
    )
