"""The plan, told: as text for a terminal, as Markdown for a pull request, as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning.plan import Plan
from planning.report.brief import brief, output
from planning.report.markdown import document
from planning.report.sections import Section, sections
from planning.report.text import screen

if TYPE_CHECKING:
    from planning.dev import DevPlan

__all__ = ["brief", "markdown", "output", "text"]


def text(plan: Plan | DevPlan, *, colour: bool = False) -> str:
    """For a terminal: tables of at most 100 columns. colour: with the terminal's control codes."""
    return screen(_sections(plan), colour=colour)


def markdown(plan: Plan | DevPlan) -> str:
    """For a pull request, with a Mermaid timeline of `up`."""
    return document(_sections(plan), plan.startup.steps if isinstance(plan, Plan) else ())


def _sections(plan: Plan | DevPlan) -> tuple[Section, ...]:
    if isinstance(plan, Plan):
        return sections(plan)
    from planning.report.dev import dev_sections

    return dev_sections(plan)
