"""The plan, told: as text for a terminal, as Markdown for a pull request, as JSON for programs."""

from __future__ import annotations

from planning.report.markdown import markdown
from planning.report.text import text

__all__ = ["markdown", "text"]
