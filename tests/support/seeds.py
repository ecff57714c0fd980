"""The source documents, and how a test reads a figure out of their text."""

from __future__ import annotations

import re
from pathlib import Path

SEEDS = Path(__file__).parents[1] / "seeds"
RECIPE = (SEEDS / "eks-b300-recipe.txt").read_text(encoding="utf-8")
GUIDE = (SEEDS / "llm-d-guide.txt").read_text(encoding="utf-8")
BLOG = (SEEDS / "llm-d-blog.txt").read_text(encoding="utf-8")


def stated(text: str, pattern: str) -> float:
    """The one number that the pattern's group finds; an AssertionError when the text says nothing or says two things."""
    found = {match.replace(",", "") for match in re.findall(pattern, text)}
    assert len(found) == 1, f"{pattern!r} finds {sorted(found)}"
    return float(found.pop())
