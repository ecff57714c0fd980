"""The plan for a pull request: Markdown with a Mermaid timeline of `up`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from planning.report.sections import STARTUP_TITLE, Section
from planning.startup import Step, path_seconds

ZERO = datetime(2000, 1, 1)


def document(sections: Sequence[Section], steps: tuple[Step, ...]) -> str:
    """The report; with a timeline where there are steps."""
    parts: list[str] = []
    for section in sections:
        parts.append(_section(section))
        if section.title == STARTUP_TITLE and steps:
            parts.append(timeline(steps))
    return "\n\n".join(parts) + "\n"


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [_row(columns), _row(tuple("---" for _ in columns)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    if section.columns:
        lines.append(table(section.columns, section.rows))
    lines += [f"- {note}" for note in section.notes]
    return "\n".join(lines).rstrip()


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def timeline(steps: tuple[Step, ...]) -> str:
    """A Mermaid Gantt chart of the slow end of every step; what accelerators are billed for is marked."""
    lines = [
        "```mermaid",
        "gantt",
        "  title The slow end of every step",
        "  dateFormat YYYY-MM-DDTHH:mm",
        "  axisFormat %H:%M",
    ]
    billed = ""
    for step in steps:
        if step.billed != billed:
            billed = step.billed
            lines.append(f"  section {billed}")
        end = path_seconds(steps, until=step.name).high
        start = ZERO + timedelta(seconds=end - step.seconds.high)
        minutes = max(1, round(step.seconds.high / 60))
        mark = "crit, " if "block" in billed or "accelerator" in billed else ""
        lines.append(f"  {step.name.replace(':', ' ')} :{mark}{start:%Y-%m-%dT%H:%M}, {minutes}m")
    return "\n".join([*lines, "```"])
