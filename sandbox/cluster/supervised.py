"""The supervisor seen from the host: started in namespaces of its own, looked at, ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from sandbox import toolchain
from sandbox.cluster.cgroups import remove_control_groups
from sandbox.cluster.layout import POD_NETWORK, Layout, Profile
from sandbox.cluster.machine import NAMESPACES
from sandbox.cluster.network import connect, disconnect
from sandbox.cluster.processes import CONTAINERD_ROOT, KUBELET_ROOT, processes
from sandbox.images import PAUSE

CHECKOUT = Path(__file__).parent.parent.parent
PID_FILE = "supervisor.pid"
"""Holds the supervisor's process id as the host sees it, and its start time."""

LONGEST_END = 60
"""Seconds that the kernel may take to end everything in the namespaces. It takes about one."""


def launch(layout: Layout) -> None:
    """Starts the supervisor in its namespaces and gives it its network."""
    layout.status_file.unlink(missing_ok=True)
    layout.logs.mkdir(exist_ok=True)
    specification = layout.state / "spec.json"
    specification.write_text(json.dumps(_specification(layout), indent=1))
    supervisor = [sys.executable, "-m", "sandbox.cluster.supervisor", str(specification)]
    with (layout.logs / "supervisor.log").open("ab") as log:
        child = subprocess.Popen(
            ["unshare", *NAMESPACES, "--mount-proc", "--fork", "--kill-child=SIGKILL", "--", *supervisor],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
    assert child.stdin is not None
    with child.stdin as word:
        pid = _only_child(child)
        (layout.state / PID_FILE).write_text(f"{pid} {_start_time(pid)}")
        connect(layout, pid)
        word.write(b"go\n")


def pid_of(state: Path) -> int | None:
    """The supervisor's process id as the host sees it, or None when it does not run (a number that was given out anew counts as none)."""
    try:
        pid, started = (state / PID_FILE).read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def kill(state: Path) -> None:
    """Kills the supervisor, and with it all that runs in its namespaces."""
    pid = pid_of(state)
    if pid is not None:
        descriptor = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [], LONGEST_END)
        os.close(descriptor)
    (state / PID_FILE).unlink(missing_ok=True)


def end(layout: Layout) -> None:
    """Kills the cluster, and takes away its link and its control groups."""
    kill(layout.state)
    disconnect(layout)
    remove_control_groups(layout.cgroup)


def said(layout: Layout) -> dict[str, dict[str, object]]:
    """What the supervisor last said of its programs."""
    try:
        return dict(json.loads(layout.status_file.read_text()))
    except (OSError, ValueError):
        return {}


def last_words(layout: Layout, program: str) -> str:
    """The last line of a program's log."""
    log = layout.logs / f"{program}.log"
    try:
        return log.read_text(errors="replace").strip().rpartition("\n")[2] or f"see {log}"
    except OSError:
        return "it left no log"


def _specification(layout: Layout) -> dict[str, object]:
    programs = processes(layout, toolchain.tool, pause_image=PAUSE)
    needed = {layout.state, CHECKOUT, Path(sys.prefix), Path(sys.base_prefix), toolchain.cache_directory()}
    return {
        "host_name": "sandbox",
        "runs_pods": layout.profile is Profile.NODE,
        "node_address": layout.node_address,
        "service_network": layout.service_network,
        "pod_network": POD_NETWORK,
        "cgroup": layout.cgroup,
        "logs": str(layout.logs),
        "status_file": str(layout.status_file),
        "certificate": str(layout.pki / "sandbox"),
        "keep": [str(path.resolve()) for path in needed],
        "binds": {
            str(layout.state / "kubelet"): KUBELET_ROOT,
            str(layout.state / "containerd"): CONTAINERD_ROOT,
        },
        "processes": [asdict(each) for each in programs],
    }


def _environment() -> dict[str, str]:
    """What the programs see of the user's environment. Not its proxies, nor what etcd and others take as settings (ETCD_…)."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/root"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(CHECKOUT),
    }


def _only_child(parent: subprocess.Popen[bytes]) -> int:
    """The process that `unshare` forks: process 1 of the namespaces."""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while parent.poll() is None:
        if pids := children.read_text().split():
            return int(pids[0])
    raise OSError(f"`unshare` ended with exit code {parent.returncode}")


def _start_time(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None when there is none, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
