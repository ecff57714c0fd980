"""Where a fact comes from. Every row of the catalogue carries one, or one for each of its groups of values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Source:
    """where: file, page or document. date: of that version, as far as it is known. kind: how far it can be trusted.

    kind: `published` (vendor or source code), `measured` (a run that someone reports), `field note` (an operator's notes,
    low authority), `assumption` (nobody says; our guess, shown as such).
    """

    where: str
    date: str
    kind: str = "published"


ASSUMED = Source(where="no public source; a cautious guess", date="2026-12-01", kind="assumption")

RECIPE = Source(where="Modelplane docs, Kimi K3.1 Pro on EKS (tests/seeds/eks-b300-recipe.txt)", date="2026-11")
GUIDE = Source(where="llm-d guide kimi-k3-1 (tests/seeds/llm-d-guide.txt)", date="2026-11")
