"""A rule: a small check with a name, a reason, a remedy and a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from planning.findings import Finding, Severity
from planning.rules.context import Context, EngineView


@dataclass(frozen=True)
class Found:
    """What a check found: the sentence, the value, and a remedy that knows the value (else the rule's own)."""

    what: str
    value: object = ""
    remedy: str = ""


StackCheck = Callable[[Context], Iterator[Found]]
EngineCheck = Callable[[EngineView], Iterator[Found]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """id: what `acknowledge` names. check: yields what it finds."""

    id: str
    severity: Severity
    why: str
    remedy: str
    source: str
    check: StackCheck

    def findings(self, context: Context) -> Iterator[Finding]:
        """The rule's findings, complete."""
        for found in self.check(context):
            yield Finding(
                rule=self.id,
                severity=self.severity,
                what=found.what,
                value=str(found.value),
                why=self.why,
                remedy=found.remedy or self.remedy,
                source=self.source,
            )


def _in_all(found: Found, lists: Iterable[list[Found]]) -> bool:
    return all(found in founds for founds in lists)


class Rules:
    """A topic's rules, filled by decorators."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.all: list[Rule] = []

    def stack(
        self, name: str, severity: Severity, *, why: str, remedy: str, source: str = ""
    ) -> Callable[[StackCheck], StackCheck]:
        """Registers a check of the whole environment."""

        def register(check: StackCheck) -> StackCheck:
            self.all.append(
                Rule(id=name, severity=severity, why=why, remedy=remedy, source=source or self.source, check=check)
            )
            return check

        return register

    def engine(
        self, engine: str, name: str, severity: Severity, *, why: str, remedy: str, source: str = ""
    ) -> Callable[[EngineCheck], EngineCheck]:
        """Registers a check that runs once for every engine of this kind; `any` is every kind."""

        def register(check: EngineCheck) -> EngineCheck:
            def every(context: Context) -> Iterator[Found]:
                views = [view for view in context.engines if engine in ("any", view.workload.engine)]
                by_role = {view.role: list(check(view)) for view in views}
                shared = [found for found in next(iter(by_role.values()), []) if _in_all(found, by_role.values())]
                yield from shared
                for role, founds in by_role.items():
                    for found in founds:
                        if found not in shared:
                            yield Found(f"{role}: {found.what}", found.value, found.remedy)

            self.stack(name, severity, why=why, remedy=remedy, source=source)(every)
            return check

        return register
