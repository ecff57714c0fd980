"""The embedded cluster for tests: one with a real node for the whole run, and kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox import cluster
from sandbox.cluster import Layout, Profile, SandboxError
from sandbox.cluster.cgroups import control_group_roots

CHECKOUT = Path(__file__).parent.parent.parent


CANNOT_RUN = ("takes root", "missing: ", "refuses new namespaces", "lacks what the embedded cluster needs")
"""What the embedded cluster says of a machine that can't run it."""


@contextmanager
def started(state: Path, *, profile: Profile) -> Iterator[Layout]:
    """A cluster that surely ends. Where this machine can't run it the test counts as not run, with the reason.

    It has numbers that the other lane's clusters don't take, so that one which is killed finds its addresses free again.
    """
    if not state.exists():
        state.mkdir(parents=True)
        lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        Layout(state=state, profile=profile, number=64 * (1 + lane)).save()
    try:
        layout = cluster.start(state, profile=profile)
    except SandboxError as error:
        if any(words in str(error) for words in CANNOT_RUN):
            pytest.skip(str(error))
        raise
    try:
        yield layout
    finally:
        cluster.stop(state)


def get(layout: Layout, *arguments: str) -> dict[str, Any]:
    """What `kubectl get` says, as data."""
    return dict(json.loads(cluster.kubectl(layout, "get", *arguments, "--output=json")))


def run_python(
    layout: Layout, pod: str, program: str, *, namespace: str = "default"
) -> subprocess.CompletedProcess[str]:
    """Runs a Python program inside a pod that has Python."""
    command = cluster.kubectl_command(layout, f"--namespace={namespace}", "exec", pod, "--", "python3", "-c", program)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def leftovers(state: Path) -> list[str]:
    """What a cluster has left on this machine: processes, mounts, links, control groups, files."""
    found = [f"file {state}"] if state.exists() else []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(state) in command and int(process.name) != os.getpid():
                found.append(f"process {command}")
    found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(state) in line]
    return found


def links_and_groups(layout: Layout) -> list[str]:
    """The host's end of the link and the control groups of a cluster, where they exist."""
    shown = subprocess.run(["ip", "-json", "link", "show"], capture_output=True, text=True, check=True).stdout
    links = [link["ifname"] for link in json.loads(shown) if link["ifname"] == layout.link]
    groups = [root / layout.cgroup for root in control_group_roots()]
    return links + [str(group) for group in groups if group.exists()]


def sandbox(
    *arguments: str, state: Path, before: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command as a user types it; `before` are words before it, such as `setpriv …`."""
    return subprocess.run(
        [*before, *sandbox_command(*arguments, state=state)],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def sandbox_command(*arguments: str, state: Path) -> list[str]:
    return [sys.executable, "-m", "sandbox", f"--state={state}", *arguments]
