"""The plan in a few lines for `pulumi preview`, and as a stack output that only a change of the configuration changes."""

from __future__ import annotations

from planning.findings import Severity
from planning.plan import Plan
from planning.report.sections import money, span, token_range, verdict


def brief(plan: Plan) -> str:
    """What a reader of a preview must know: verdict, times, cost, warnings; the whole report is a command away."""
    ranks = "; ".join(f"{rank.role} pool {token_range(rank.pool_tokens)} tokens" for rank in plan.memory.ranks)
    lines = [
        f"fits: {verdict(plan)}; {ranks}",
        f"first token after {span(plan.startup.first_token_seconds)}, "
        f"accelerators run {span(plan.startup.accelerated_seconds)} of it",
        f"cost: {money(plan)}",
        *(found.line() for found in plan.findings if found.severity is not Severity.NOTE),
        f"the whole plan: python -m planning --stack {plan.target}",
    ]
    return "\n".join(lines)


def output(plan: Plan) -> dict[str, object]:
    """For the stack's outputs. Nothing in it depends on the clock, so that a second `up` finds no change."""
    return {
        "fits": verdict(plan),
        "pool_tokens": {
            rank.role: [round(rank.pool_tokens.low), round(rank.pool_tokens.high)] for rank in plan.memory.ranks
        },
        "first_token_seconds": [
            round(plan.startup.first_token_seconds.low),
            round(plan.startup.first_token_seconds.high),
        ],
        "startup_probe_seconds": plan.startup.limits.startup_seconds,
        "known_hourly_usd": round(plan.cost.known_hourly_usd, 2),
        "groups_without_price": plan.cost.unknown,
        "warnings": [
            found.rule
            for found in plan.findings
            if found.severity is Severity.WARNING and not found.rule.startswith("block-")
        ],
    }
