"""Waits for a cluster that starts, and tells why it does not."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.cluster.errors import SandboxError, StateUnusableError, SupervisorEndedError
from sandbox.cluster.images import load_into
from sandbox.cluster.layout import Layout, Profile
from sandbox.cluster.objects import kubectl
from sandbox.cluster.supervised import last_words, pid_of, said
from sandbox.images import COREDNS

PATIENCE = 120.0
"""Seconds until a component that does not come up is reported. All of them take about 10 s on an idle machine with two cores."""

KEEPERS = ("etcd", "containerd")
"""Programs that read what they wrote before."""

HOPELESS = 4
"""Starts of such a program, none of which came to serve, after which what it wrote counts as unusable."""


def wait_until_ready(layout: Layout) -> None:
    """Waits until the API server and every program serve, and with a real node until its images are there and DNS answers.

    Raises StateUnusableError when what the cluster kept can't be read, SupervisorEndedError, or SandboxError when time is up.
    """
    if layout.profile is Profile.CONTROL_PLANE:
        _wait_for(lambda: _answers(layout), "the API server", layout)
        _wait_for(lambda: _all_ready(layout), "every program", layout)
        return
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Images take as long as the control plane: they go in while that starts. First those without which no pod comes up.
        first = beside.submit(_load_images, layout, ("pause", "coredns"))
        rest = beside.submit(_load_images, layout, None)
        _wait_for(lambda: _answers(layout), "the API server", layout)
        first.result()
        kubectl(layout, "apply", "--server-side", "--filename=-", given=_node_objects(layout))
        _wait_for(lambda: _all_ready(layout), "every program", layout)
        _wait_for(lambda: _name_is_known(layout), "DNS", layout)
        rest.result()


def _load_images(layout: Layout, names: tuple[str, ...] | None) -> None:
    _wait_for(lambda: said(layout).get("containerd", {}).get("ready"), "containerd", layout)
    load_into(layout, names)


def _node_objects(layout: Layout) -> str:
    text = (Path(__file__).parent / "node.yaml").read_text()
    return text.replace("DNS_ADDRESS", layout.dns_address).replace("COREDNS_IMAGE", COREDNS)


def _all_ready(layout: Layout) -> bool:
    programs = said(layout)
    return bool(programs) and all(each["ready"] for each in programs.values())


def _answers(layout: Layout) -> bool:
    context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
    # The machine's proxy, where it has one, does not know the cluster.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with direct.open(f"{layout.server}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _name_is_known(layout: Layout) -> bool:
    """Whether the cluster's DNS, asked by the host at its Service's address, knows the API server's Service.

    That takes the kubelet, a container, the pod network and kube-proxy, so it can't be a memory of a former run.
    """
    name = b"".join(bytes([len(part)]) + part.encode() for part in ("kubernetes", "default", "svc", "cluster", "local"))
    question = struct.pack("!6H", os.getpid() & 0xFFFF, 0x0100, 1, 0, 0, 0) + name + b"\0" + struct.pack("!2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.5)
        try:
            asking.sendto(question, (layout.dns_address, 53))
            answer = asking.recv(512)
        except OSError:
            return False
    return answer[:2] == question[:2] and socket.inet_aton(layout.api_service_address) in answer


def _wait_for(ask: Callable[[], object], what: str, layout: Layout) -> None:
    """Asks until the answer is true."""
    end = time.monotonic() + PATIENCE
    while not ask():
        if pid_of(layout.state) is None:
            raise SupervisorEndedError(
                f"the cluster's supervisor ended while {what} was awaited: {last_words(layout, 'supervisor')}"
            )
        programs = said(layout)
        for name in KEEPERS:
            if name in programs and not programs[name]["running"] and int(str(programs[name]["starts"])) >= HOPELESS:
                raise StateUnusableError(f"{name} does not start: {last_words(layout, name)}")
        if time.monotonic() > end:
            late = [name for name, each in programs.items() if not each["ready"]]
            raise SandboxError(
                f"{what} did not come up within {PATIENCE:.0f} s (not ready: {', '.join(late) or 'none'}). Logs: {layout.logs}"
            )
        time.sleep(0.1)
