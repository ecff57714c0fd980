"""Starts, stops and looks at an embedded cluster, from the host's side."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from sandbox import toolchain
from sandbox.cluster import pki
from sandbox.cluster.cgroups import remove_control_groups
from sandbox.cluster.errors import INSTEAD, SandboxError, SupervisorEndedError
from sandbox.cluster.images import load_into
from sandbox.cluster.layout import NODE, Layout, Profile
from sandbox.cluster.network import connect, disconnect, free_number
from sandbox.cluster.processes import processes
from sandbox.images import COREDNS, PAUSE
from sandbox.packages import install_command, missing_packages

T = TypeVar("T")

CHECKOUT = Path(__file__).parent.parent.parent
PATIENCE = 120.0
"""Seconds until a component that does not come up is reported. It takes about 10 s on an idle machine with two cores."""

NAMESPACES = ("--pid", "--mount", "--net", "--uts", "--ipc")


def start(state: Path, *, profile: Profile = Profile.NODE) -> Layout:
    """Starts the cluster in `state` and comes back when it is ready; one that runs already is left as it is.

    Raises SandboxError when this machine can't run it, when another process works on the same state, or when a part does not come up.
    """
    check_machine(profile)
    state = state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    with only_one(state):
        layout = Layout.load(state)
        if layout and layout.profile is profile and pid_of(layout):
            with suppress(SupervisorEndedError):  # it was just being killed: start it anew
                wait_until_ready(layout)
                return layout
        if layout:
            _end(layout)
        layout = layout if layout and layout.profile is profile else Layout(state=state, profile=profile, number=0)
        layout = free_number(layout)
        layout.save()
        pki.ensure(layout)
        _launch(layout)
        wait_until_ready(layout)
    return layout


def stop(state: Path) -> bool:
    """Ends the cluster in `state` and removes the state; False when there was nothing."""
    state = state.resolve()
    if not state.exists():
        return False
    with only_one(state):
        layout = Layout.load(state)
        if layout:
            _end(layout)
        shutil.rmtree(state)
    return layout is not None


def running(state: Path) -> bool:
    """Whether the cluster in `state` runs."""
    layout = Layout.load(state.resolve())
    return layout is not None and pid_of(layout) is not None


def status(state: Path) -> dict[str, dict[str, object]]:
    """What the supervisor last said of its programs; empty when the cluster does not run."""
    layout = Layout.load(state.resolve())
    if layout is None or pid_of(layout) is None:
        return {}
    return _said(layout)


def check_machine(profile: Profile) -> None:
    """Raises SandboxError with everything that keeps this machine from running the profile."""
    if os.geteuid() != 0:
        raise SandboxError(
            f"the embedded cluster makes namespaces and network links, which takes root; you are user {os.geteuid()}. Use sudo. {INSTEAD}"
        )
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        raise SandboxError(
            f"`unshare` (util-linux) and `ip` (iproute2) are needed and missing. Install them. {INSTEAD}"
        )
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "--mount-proc", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        raise SandboxError(f"this kernel or container refuses new namespaces ({tried.stderr.strip()}). {INSTEAD}")
    if profile is Profile.NODE and (packages := missing_packages()):
        raise SandboxError(
            f"a real node needs {', '.join(packages)}. On Debian: {' '.join(install_command(packages))}. {INSTEAD}"
        )


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Holds the state's lock, which lies beside it so that it outlives the state."""
    with state.with_name(f".{state.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SandboxError(
                f"another process starts or stops the cluster in {state}. Wait for it and try again."
            ) from None
        yield


def pid_of(layout: Layout) -> int | None:
    """The supervisor's process id as the host sees it, or None when it does not run (a number that was given out anew counts as none)."""
    try:
        pid, started = layout.pid_file.read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def _start_time(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None when there is none, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _launch(layout: Layout) -> None:
    """Starts the supervisor in its namespaces, then gives it its network."""
    layout.status_file.unlink(missing_ok=True)
    stages = [
        toolchain.module_directory("sigs.k8s.io/kwok", module="kwok") / "kustomize" / "stage" / path
        for path in KWOK_STAGES
    ]
    spec = layout.state / "spec.json"
    spec.write_text(
        json.dumps(
            {
                "host_name": "sandbox",
                "node_address": layout.node_address,
                "service_network": layout.service_network,
                "cgroup": layout.cgroup,
                "logs": str(layout.logs),
                "status_file": str(layout.status_file),
                "processes": [
                    asdict(each) for each in processes(layout, toolchain.tool, kwok_stages=stages, pause_image=PAUSE)
                ],
            },
            indent=1,
        )
    )
    layout.logs.mkdir(exist_ok=True)
    with (layout.logs / "supervisor.log").open("ab") as log:
        child = subprocess.Popen(
            [
                "unshare",
                *NAMESPACES,
                "--mount-proc",
                "--fork",
                "--kill-child=SIGKILL",
                "--",
                sys.executable,
                "-m",
                "sandbox.cluster.supervisor",
                str(spec),
            ],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            start_new_session=True,
        )
    pid = _wait_for(
        lambda: _only_child(child.pid), what="the supervisor", alive=lambda: child.poll() is None, layout=layout
    )
    layout.pid_file.write_text(f"{pid} {_start_time(pid)}")
    connect(layout, pid)
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.close()


KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


def _only_child(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def wait_until_ready(layout: Layout) -> None:
    """Waits for every program, and with a real node for its images, node and DNS."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Images take as long as the control plane: they go in while that starts.
        images = beside.submit(_load_images, layout) if layout.profile is Profile.NODE else None
        _wait_for(lambda: _answers(layout), what="the API server", layout=layout)
        if images:
            kubectl(layout, "apply", "--server-side", "--filename=-", given=_node_objects(layout))
            images.result()
            kubectl(layout, "wait", f"node/{NODE}", "--for=create", "--timeout=60s")
            kubectl(layout, "wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=60s")
            kubectl(
                layout,
                "--namespace=kube-system",
                "wait",
                "deployment/coredns",
                "--for=condition=Available",
                "--timeout=60s",
            )
    _wait_for(lambda: _all_ready(layout), what="every program", layout=layout)


def _load_images(layout: Layout) -> None:
    _wait_for(lambda: _said(layout).get("containerd", {}).get("ready"), what="containerd", layout=layout)
    pid = pid_of(layout)
    assert pid is not None
    load_into(pid, layout)


def _node_objects(layout: Layout) -> str:
    text = (Path(__file__).parent / "node.yaml").read_text()
    return text.replace("DNS_ADDRESS", layout.dns_address).replace("COREDNS_IMAGE", COREDNS)


def kubectl(layout: Layout, *arguments: str, given: str | None = None) -> str:
    """Runs kubectl as the administrator, with `given` on its standard input; raises SandboxError with what it said."""
    done = subprocess.run(
        [str(toolchain.tool("kube")), "kubectl", f"--kubeconfig={layout.kubeconfig}", *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SandboxError(f"kubectl {' '.join(arguments[:2])}: {done.stderr.strip()}. Logs: {layout.logs}")
    return done.stdout


def _said(layout: Layout) -> dict[str, dict[str, object]]:
    try:
        return dict(json.loads(layout.status_file.read_text()))
    except (OSError, ValueError):
        return {}


def _all_ready(layout: Layout) -> bool:
    said = _said(layout)
    return bool(said) and all(each["ready"] for each in said.values())


def _answers(layout: Layout) -> bool:
    context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
    try:
        with urllib.request.urlopen(f"{layout.server}/readyz", timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wait_for(ask: Callable[[], T | None], *, what: str, layout: Layout, alive: Callable[[], bool] | None = None) -> T:
    """Asks until the answer is true; raises SandboxError when time is up or the supervisor is gone."""
    alive = alive or (lambda: pid_of(layout) is not None)
    end = time.monotonic() + PATIENCE
    while not (answer := ask()):
        if not alive():
            raise SupervisorEndedError(
                f"the cluster's supervisor ended while {what} was awaited: {_tail(layout.logs / 'supervisor.log')}"
            )
        if time.monotonic() > end:
            late = [name for name, each in _said(layout).items() if not each["ready"]]
            raise SandboxError(
                f"{what} did not come up within {PATIENCE:.0f} s (not ready: {', '.join(late) or 'none'}). Logs: {layout.logs}"
            )
        time.sleep(0.1)
    return answer


def _tail(log: Path) -> str:
    try:
        return log.read_text().strip().rpartition("\n")[2] or f"see {log}"
    except OSError:
        return "it left no log"


def _end(layout: Layout) -> None:
    """Kills the supervisor, and with it all that runs in its namespaces; takes away link and control groups."""
    pid = pid_of(layout)
    if pid is not None:
        descriptor = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [], PATIENCE)
        os.close(descriptor)
    layout.pid_file.unlink(missing_ok=True)
    disconnect(layout)
    remove_control_groups(layout.cgroup)
