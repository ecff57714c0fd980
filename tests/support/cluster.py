"""The embedded cluster for tests: one with a real node for the whole run, and kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox import cluster
from sandbox.cluster import Layout, Profile, SandboxError


@contextmanager
def started(state: Path, *, profile: Profile) -> Iterator[Layout]:
    """A cluster that surely ends. Where this machine can't run it the test counts as not run, with the reason."""
    try:
        layout = cluster.start(state, profile=profile)
    except SandboxError as error:
        if os.geteuid() != 0 or "refuses new namespaces" in str(error) or "a real node needs" in str(error):
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
    kube = str(cluster.control.toolchain.tool("kube"))
    command = [
        kube,
        "kubectl",
        f"--kubeconfig={layout.kubeconfig}",
        f"--namespace={namespace}",
        "exec",
        pod,
        "--",
        "python3",
        "-c",
        program,
    ]
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
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{layout.cgroup}")]
    return links + groups


def have(program: str) -> bool:
    return shutil.which(program) is not None
