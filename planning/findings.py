"""What the plan has to say about a configuration: one finding is one sentence for the person at the terminal."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """How far a finding goes: an error stops the program before anything is created."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(BaseModel):
    """One finding: what is wrong, the value, why it matters, what to do, and where the rule comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    rule: str
    severity: Severity
    what: str
    value: str = ""
    why: str = ""
    remedy: str = ""
    source: str = ""

    def line(self) -> str:
        """The finding as one line, whatever was typed into the value: what (value): why. Remedy. [rule]"""
        text = self.what
        if self.value:
            text += f" ({self.value})"
        if self.why:
            text += f": {self.why}"
        text = _sentence(text)
        if self.remedy:
            text += f" {_sentence(self.remedy)}"
        plain = "".join(letter if letter.isprintable() else " " for letter in text)
        return f"{self.severity}: {' '.join(plain.split())} [{self.rule}]"


def _sentence(text: str) -> str:
    return text if text.endswith("?") else text.rstrip(".") + "."


class ConfigurationError(Exception):
    """The configuration can't be used; carries every finding, not only the first."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(f.line() for f in findings))
