"""Marks each test with its level (the folder below tests/) and says at the end what each level proved, and what did not run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.cluster import Layout, Profile
from tests.support.cluster import started
from tests.support.dev import Dev, dev_up

TESTS = Path(__file__).parent
LEVELS = ("unit", "program", "vendor", "cluster", "serving", "engine")
"""The cheap ones first. Engine comes last: it takes the dev stack down that the serving level uses."""
TARGETS = {"dev": "dev", "eks": "eks_b300", "aws": "eks_b300", "clouds": "eks_b300"}
"""A word in a test's path below its level → the environment that the test is about."""


def level_of(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


NOT_IN_THE_FULL_RUN = {
    TESTS / "engine" / "eks": "the EKS stack's life on the real engine has not been green in one quiet run yet; "
    "run it by itself: make test LEVEL=engine TARGET=eks-b300",
}
"""Folders that only an explicit choice of level or target runs, with the reason; in a full run they count as not run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LEVELS.index(level_of(item.path)))  # stable: the order within a level stays
    for item in items:
        item.add_marker(getattr(pytest.mark, level_of(item.path)))
        reason = NOT_IN_THE_FULL_RUN.get(item.path.parent)
        if reason and not config.getoption("markexpr"):
            item.add_marker(pytest.mark.skip(reason=reason))
        for word, target in TARGETS.items():
            if any(
                part.removeprefix("test_").startswith(word)
                for part in item.path.relative_to(TESTS).with_suffix("").parts[1:]
            ):
                item.add_marker(getattr(pytest.mark, target))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            path = Path(report.nodeid.split("::")[0])
            level = path.parts[1] if len(path.parts) > 1 else "unit"
            counts[level]["not run" if outcome == "skipped" else outcome] += 1
            if outcome == "skipped" and isinstance(report.longrepr, tuple):
                reasons[level].add(str(report.longrepr[2]).removeprefix("Skipped: "))
    terminalreporter.section("levels of proof")
    for level in LEVELS:
        if counts[level]:
            terminalreporter.write_line(
                f"{level:8} " + ", ".join(f"{n} {what}" for what, n in sorted(counts[level].items()))
            )
        for reason in sorted(reasons[level]):
            terminalreporter.write_line(f"         not run: {reason}")


@pytest.fixture(scope="session")
def node_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """The embedded cluster with its real node, one for the whole run."""
    with started(tmp_path_factory.mktemp("node") / "state", profile=Profile.NODE) as layout:
        yield layout


@pytest.fixture(scope="session")
def dev(node_cluster: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """The dev stack, up on the embedded cluster; one for the whole run."""
    with dev_up(node_cluster, tmp_path_factory.mktemp("dev")) as stands:
        yield stands
