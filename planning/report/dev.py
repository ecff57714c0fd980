"""The dev environment's plan as sections: there is nothing to fit and nothing to pay, only sizes and who may talk to whom."""

from __future__ import annotations

from planning.dev import DevPlan
from planning.flows import Anywhere, ApiServer, Pods
from planning.report.sections import Section


def dev_sections(plan: DevPlan) -> tuple[Section, ...]:
    """What the environment will be, and its flow table."""
    return (
        Section(title=f"{plan.target}: {plan.model}", columns=("", ""), rows=tuple(plan.summary().items())),
        Section(
            title="Flows; everything else is refused",
            columns=("flow", "from", "to", "ports", "why"),
            rows=tuple(
                (flow.name, _end(flow.source), _end(flow.target), ", ".join(map(str, flow.ports)), flow.why)
                for flow in plan.flows
            ),
        ),
    )


def _end(end: Pods | Anywhere | ApiServer) -> str:
    if isinstance(end, Pods):
        return f"{end.namespace}: " + ", ".join(value for value in end.labels.values() if value != "true")
    return "anywhere" if isinstance(end, Anywhere) else "the Kubernetes API"
