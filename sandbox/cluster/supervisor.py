"""Process 1 of a cluster's namespaces: readies them, starts the programs, starts again what dies, and reaps what is orphaned.

python -m sandbox.cluster.supervisor SPEC.json, inside fresh PID, mount, network, UTS and IPC namespaces. It waits for one line on
standard input (by then the host has put the link's other end into the network namespace). When it ends, the kernel ends
everything else in here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.cluster.cgroups import control_group_roots

LONGEST_PAUSE = 10.0
"""Seconds between two starts of a program that keeps dying."""


@dataclass
class Running:
    """A program and what has become of it."""

    spec: dict[str, Any]
    logs: Path
    trust: ssl.SSLContext
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    starts: int = 0
    not_before: float = 0.0
    last_exit: int | None = None
    started: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        self.starts += 1
        self.started = time.monotonic()
        with (self.logs / f"{self.spec['name']}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.spec["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def died(self, code: int) -> None:
        lived = time.monotonic() - self.started
        self.process, self.ready, self.last_exit = None, False, code
        pause = 0.3 if lived > LONGEST_PAUSE else min(LONGEST_PAUSE, 0.3 * 2 ** min(self.starts, 6))
        self.not_before = time.monotonic() + pause

    def look(self) -> None:
        """Notices that the program serves. Once noticed it stays so until it dies."""
        if self.process and not self.ready:
            self.ready = all(serves(where, self.trust) for where in self.spec["ready"])


def serves(where: str, trust: ssl.SSLContext) -> bool:
    """Whether a URL answers 200, or a socket exists."""
    if where.startswith("/"):
        return Path(where).exists()
    try:
        with urllib.request.urlopen(where, timeout=2, context=trust) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def administrator(certificate: str) -> ssl.SSLContext:
    """Asks as the holder of a client certificate (PATH.crt and PATH.key)."""
    trust = ssl._create_unverified_context()  # one's own loopback: there is nobody else to be mistaken for
    trust.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    return trust


class Supervisor:
    """Runs the programs of one specification until it is told to stop."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.status_file = Path(spec["status_file"])
        trust = administrator(spec["certificate"])
        logs = Path(spec["logs"])
        logs.mkdir(parents=True, exist_ok=True)
        self.running = {each["name"]: Running(each, logs, trust) for each in spec["processes"]}
        self.said = ""

    def run(self) -> None:
        while True:
            self.reap()
            for each in self.running.values():
                if each.process is None and self.may_start(each):
                    each.start()
                each.look()
            self.say()
            time.sleep(0.1 if not all(r.ready for r in self.running.values()) else 0.5)

    def may_start(self, each: Running) -> bool:
        waits = any(not self.running[name].ready for name in each.spec["after"])
        return not waits and time.monotonic() >= each.not_before

    def reap(self) -> None:
        """Every child that ended, ours and the orphans that process 1 inherits."""
        ours = {each.process.pid: each for each in self.running.values() if each.process}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in ours:
                code = os.waitstatus_to_exitcode(status)
                ours[pid].process.returncode = code  # type: ignore[union-attr]  # reaped here, not by Popen
                ours[pid].died(code)

    def say(self) -> None:
        status = json.dumps(
            {
                name: {
                    "running": each.process is not None,
                    "ready": each.ready,
                    "starts": each.starts,
                    "last_exit": each.last_exit,
                }
                for name, each in self.running.items()
            }
        )
        if status != self.said:
            fresh = self.status_file.with_name(".status.json")
            fresh.write_text(status)
            fresh.replace(self.status_file)
            self.said = status


def ready_namespaces(spec: dict[str, Any]) -> None:
    """Private directories, the network link, the host name, the control groups."""
    # What containers share with the node (mount propagation) needs shared mounts. They are shared in here only.
    command("mount", "--make-rshared", "/")
    for directory in ("/run", "/var/lib", "/var/log"):
        cover(directory, keep=spec["keep"])
    for directory in ("/run/containerd", "/run/netns", "/var/lib/cni", "/var/log/pods", "/var/log/containers"):
        Path(directory).mkdir(parents=True, exist_ok=True)
    for source, target in spec["binds"].items():
        for end in (source, target):
            Path(end).mkdir(parents=True, exist_ok=True)
        command("mount", "--bind", source, target)
    socket.sethostname(spec["host_name"])
    ready_network(spec)
    if spec["runs_pods"]:
        ready_for_pods(spec)


def cover(directory: str, *, keep: list[str]) -> None:
    """An empty directory over the host's. What is needed from below it (a checkout in /var/lib, say) shows through."""
    kept = {
        path: os.open(path, os.O_PATH | os.O_DIRECTORY)
        for path in sorted(keep, key=len)
        if Path(path).is_relative_to(directory)
    }
    command("mount", "-t", "tmpfs", "tmpfs", directory)
    for path, descriptor in kept.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        # By descriptor: the path itself leads to the empty directory by now.
        command("mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{descriptor}", path, descriptor=descriptor)
        os.close(descriptor)


def ready_network(spec: dict[str, Any]) -> None:
    """Addresses and routes. There is no way out, so no default route."""
    command("ip", "link", "set", "lo", "up")
    command("ip", "address", "add", f"{spec['node_address']}/30", "dev", "eth0")
    command("ip", "link", "set", "eth0", "up")
    # The API server's own calls to Services (webhooks) need some route to be rewritten on.
    command("ip", "route", "add", spec["service_network"], "dev", "lo", "src", spec["node_address"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def ready_for_pods(spec: dict[str, Any]) -> None:
    """Keeps pods off the host, and makes the control groups that they live in."""
    # What listens on all of the host's addresses is no business of pods; their answers to the host are let through.
    outwards = ("--source", spec["pod_network"], "--out-interface", "eth0")
    refused = ("--match", "conntrack", "--ctstate", "NEW", "--jump", "DROP")
    command("iptables", "--table", "mangle", "--append", "FORWARD", *outwards, *refused)
    for controller in control_group_roots():
        (controller / spec["cgroup"]).mkdir(exist_ok=True)
        if controller.name == "cpuset":
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (controller / spec["cgroup"] / setting).write_text((controller / setting).read_text())


def command(*words: str, descriptor: int | None = None) -> None:
    inherited = () if descriptor is None else (descriptor,)
    done = subprocess.run(words, capture_output=True, text=True, check=False, pass_fds=inherited)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    if sys.stdin.readline() == "":
        raise SystemExit("the host went away before the network was ready")
    ready_namespaces(spec)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Supervisor(spec).run()


if __name__ == "__main__":
    main()
