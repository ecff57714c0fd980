"""kill -9 at random points of its talk with the store: what is there is right, and the next run goes on from it."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.serving.weights.conftest import Place
from tests.support.staging import MIB, REPO, command, model

CHAINS = 6
KILLS_IN_CHAIN = 4
"""Kills one after the other on the same destination, before it is left to finish: 24 in all."""


class Killer:
    """Kills the run when the store has got so many requests, before it answers or after it did its work."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.victim = at, after, None
        self.fired = False
        self.first: int | None = None

    victim: subprocess.Popen[bytes] | None

    def __call__(self, number: int, method: str, path: str) -> None:
        if self.first is None:
            self.first = number
        if self.victim and not self.fired and number - self.first >= self.at:
            self.fired = True
            self.victim.send_signal(signal.SIGKILL)
            self.victim.wait(20)


def run_to_the_kill(place: Place, line: list[str], killer: Killer) -> int:
    calm: Callable[[int, str, str], None] = lambda *_: None  # noqa: E731
    place.store.before, place.store.after = (calm, killer) if killer.after else (killer, calm)
    victim = subprocess.Popen(line, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killer.victim = victim
    code = victim.wait(120)
    place.store.before = place.store.after = calm
    return code


def arguments(place: Place) -> list[str]:
    return command("stage", "--source", place.source, "--store", place.url, "--parallel-files", "3")


@pytest.mark.parametrize("chain", range(CHAINS))
def test_killed_staging_leaves_only_right_bytes_and_goes_on(place: Place, chain: int) -> None:
    chance = random.Random(1_000 + chain)
    place.hub.repositories[REPO] = model(seed=chain)
    killed = 0
    while killed < KILLS_IN_CHAIN:
        killer = Killer(chance.randrange(1, 26), after=chance.random() < 0.5)
        code = run_to_the_kill(place, arguments(place), killer)
        assert code in (-signal.SIGKILL, 0)
        killed += code == -signal.SIGKILL
        assert place.wrong_objects() == []
        if place.manifest() is not None:
            assert place.is_whole()
            place.base += "-next"
    assert place.stage() == 0, place.last
    assert place.is_whole()
    assert place.verify("--full") == 0, place.last
    assert place.stage() == 0
    assert place.open_uploads() == []


@pytest.mark.parametrize("chain", range(2))
def test_killed_hydration_leaves_no_half_file_under_its_name(place: Place, chain: int) -> None:
    chance = random.Random(2_000 + chain)
    assert place.stage() == 0, place.last
    hydrate = command("hydrate", "--source", place.source, "--store", place.url, "--directory", str(place.node))
    copy = place.node / REPO / place.revision
    for _ in range(3):
        run_to_the_kill(place, hydrate, Killer(chance.randrange(1, 8), after=True))
        for path, file in place.repository.files.items():
            if (copy / path).exists():
                assert (copy / path).read_bytes() == file.content
    assert place.hydrate() == 0, place.last
    files = {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    files = {path: body for path, body in files.items() if not path.startswith(".staging/")}
    assert files == {path: file.content for path, file in place.repository.files.items()}


def test_sigterm_ends_it_in_order_and_the_next_run_goes_on(place: Place) -> None:
    place.hub.repositories[REPO] = model(part=24 * MIB)

    def stop(number: int, method: str, path: str) -> None:
        if "partNumber=" in path:
            victim.send_signal(signal.SIGTERM)

    place.store.after = stop
    victim = subprocess.Popen(arguments(place), env=place.environment, stderr=subprocess.PIPE, text=True)
    said = victim.communicate(timeout=60)[1]
    place.store.after = lambda *_: None
    assert victim.returncode == 143, said
    assert "run it again" in said
    assert place.manifest() is None
    assert place.open_uploads() == []
    sent = place.hub.sent
    assert place.stage() == 0, place.last
    assert place.is_whole()
    # The small files that were finished came only once.
    assert place.hub.sent - sent < sum(file.size for file in place.repository.files.values())
