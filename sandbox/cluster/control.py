"""Starts, stops and looks at an embedded cluster, from the host's side."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sandbox.cluster import pki
from sandbox.cluster.errors import SandboxError, StateUnusableError, SupervisorEndedError
from sandbox.cluster.layout import Layout, Profile
from sandbox.cluster.machine import check_machine, check_room, check_user
from sandbox.cluster.network import free_number
from sandbox.cluster.state import clear, make, mark, one_start_at_a_time, only_one, remove
from sandbox.cluster.supervised import end, kill, launch, pid_of, said
from sandbox.cluster.waiting import wait_until_ready


def start(state: Path, *, profile: Profile = Profile.NODE) -> Layout:
    """Starts the cluster in `state` and comes back when it is ready; one that runs already is left as it is.

    A cluster that was killed goes on with the objects that it had. Where that can't be, it says why and starts an empty one,
    which has another `identity`. Raises SandboxError when this machine can't run it, when another process works on the same
    state, when the state holds something else, or when a part does not come up.
    """
    check_machine(profile)
    state = state.resolve()
    with _told(state):
        make(state)
        with only_one(state):
            mark(state)
            former = Layout.load(state)
            if former and former.profile is not profile:
                raise SandboxError(
                    f"{state} holds a cluster of profile {former.profile}, and {profile} is asked for. "
                    "Take it down first (sandbox down), or name another directory: --state=…"
                )
            if former and pid_of(state):
                with suppress(SupervisorEndedError):  # it was just being killed: start it anew
                    wait_until_ready(former)
                    return former
            try:
                return _begin(state, profile, former)
            except StateUnusableError as error:
                if former is None:
                    raise  # nothing was kept: it is not that
                check_room(state, Profile.CONTROL_PLANE)  # a full disk is no reason to throw things away
                _say(f"{error}. Its objects are lost: starting an empty cluster.")
                _forget(former)
                return _begin(state, profile, None)


def stop(state: Path) -> bool:
    """Ends the cluster in `state` and removes the state; False when there was nothing.

    Raises SandboxError when another process works on it, or when the directory holds something else.
    """
    state = state.resolve()
    if not state.exists():
        return False
    check_user()
    with _told(state), only_one(state):
        layout = Layout.load(state)
        if layout:
            end(layout)
        kill(state)
        remove(state)
    return layout is not None


def running(state: Path) -> bool:
    """Whether the cluster in `state` runs."""
    layout = Layout.load(state.resolve())
    return layout is not None and pid_of(layout.state) is not None


def status(state: Path) -> dict[str, dict[str, object]]:
    """What the supervisor last said of its programs; empty when the cluster does not run."""
    layout = Layout.load(state.resolve())
    if layout is None or pid_of(layout.state) is None:
        return {}
    return said(layout)


def _begin(state: Path, profile: Profile, former: Layout | None) -> Layout:
    """Starts what does not run, with the objects of a former cluster where its addresses are still free."""
    if former:
        end(former)
    else:
        kill(state)
        clear(state, keep=("logs",))  # half-written at most
        check_room(state, profile)
    with one_start_at_a_time():
        layout = free_number(former or Layout(state=state, profile=profile, number=0))
        if former and layout.number != former.number:
            _say(
                f"another cluster has taken {former.service_network}, which the objects in {state} are bound to: starting an empty cluster."
            )
            _forget(former)
            layout = Layout(state=state, profile=profile, number=layout.number)
        layout.save()
        pki.ensure(layout)
        launch(layout)
    wait_until_ready(layout)
    return layout


def _forget(former: Layout) -> None:
    end(former)
    clear(former.state, keep=("logs",))


@contextmanager
def _told(state: Path) -> Iterator[None]:
    """What the file system refuses, in the words of this program."""
    try:
        yield
    except OSError as error:
        where = error.filename or state
        if error.errno == errno.ENOSPC:
            raise SandboxError(
                f"the disk of {where} is full. Free some room and run the same command again: it goes on where it stopped."
            ) from None
        raise SandboxError(
            f"{where}: {error.strerror or error}. The cluster's directory is {state}; name another one with --state=…"
        ) from None


def _say(line: str) -> None:
    print(f"sandbox: {line}", file=sys.stderr, flush=True)
