"""The plan for a terminal: tables of at most 100 columns, colour only where it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planning.report.sections import Section

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
STYLE = {"What stops it": "bold red", "Warnings": "yellow", "Notes": "dim"}


def screen(sections: Sequence[Section], *, colour: bool) -> str:
    """The report. colour: with the terminal's control codes."""
    from rich.console import Console  # imported here: a plan without a report needs no terminal library

    console = Console(width=WIDTH, force_terminal=colour, no_color=not colour, highlight=False, record=False)
    with console.capture() as captured:
        for section in sections:
            _print(console, section)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print(console: Console, section: Section) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    style = STYLE.get(section.title, "")
    console.print(Text(section.title, style=style or "bold"))
    if section.columns:
        table = Table(box=box.SIMPLE, show_header=any(section.columns), pad_edge=False, padding=(0, 1))
        for name in section.columns:
            table.add_column(name, overflow="fold")
        for row in section.rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    for note in section.notes:
        console.print(Text(f"• {note}", style=style), soft_wrap=False)
    console.print()
