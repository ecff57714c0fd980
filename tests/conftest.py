"""Marks each test with its level (the folder below tests/) and says at the end what each level proved, and what did not run."""

from __future__ import annotations

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from sandbox.cluster import Layout, Profile
from tests.support.cluster import started
from tests.support.dev import Dev, dev_up

TESTS = Path(__file__).parent
LEVELS = ("unit", "program", "vendor", "cluster", "serving", "engine")
"""The cheap ones first. Engine comes last: it takes the dev stack down that the serving level uses."""
TARGETS = {"dev": "dev", "eks": "eks_b300", "aws": "eks_b300", "clouds": "eks_b300"}
"""A word in a test's path below its level → the environment that the test is about."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control gives this to what it starts in the background, and that to the programs whose Ctrl-C is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def level_of(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


NODE_LANE = ("serving/dev/", "serving/test_sandbox_node.py", "engine/dev/")
"""Where the tests are that share the real node."""


def lane_of(path: Path) -> str:
    """Tests of one lane run one after the other in one process: those of a file, and all that share the real node."""
    name = path.relative_to(TESTS).as_posix()
    return "node" if name.startswith(NODE_LANE) else name


class Lanes(LoadScopeScheduling):
    """Hands out whole lanes to the processes of pytest-xdist."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(TESTS.parent / nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Stable: the order within a level stays. The longest lane starts first where several processes share the work.
    several = os.environ.get("PYTEST_XDIST_WORKER") is not None
    items.sort(key=lambda item: (several and lane_of(item.path) != "node", LEVELS.index(level_of(item.path))))
    for item in items:
        item.add_marker(getattr(pytest.mark, level_of(item.path)))
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
