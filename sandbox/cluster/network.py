"""The one link between the host and a cluster."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import subprocess
from contextlib import suppress

from sandbox.cluster.errors import INSTEAD, SandboxError
from sandbox.cluster.layout import NETWORKS, Layout


def free_number(layout: Layout) -> Layout:
    """The layout with the first number, from its own upwards, whose addresses nothing on this machine uses."""
    routes = [
        ipaddress.ip_network(route["dst"], strict=False)
        for route in _ip("-4", "route", "show", "table", "main")
        if route["dst"] != "default"
    ]
    for number in [*range(layout.number, 256), *range(layout.number)]:
        candidate = dataclasses.replace(layout, number=number)
        wanted = [
            ipaddress.ip_network(f"{candidate.host_address}/30", strict=False),
            ipaddress.ip_network(candidate.service_network),
        ]
        if not any(net.overlaps(route) for net in wanted for route in routes):
            return candidate
    raise SandboxError(
        f"no private network is free for the embedded cluster: {' and '.join(NETWORKS)} are routed elsewhere on this machine. "
        f"Take one of those routes away, or stop an embedded cluster of another checkout. {INSTEAD}"
    )


def connect(layout: Layout, pid: int) -> None:
    """Puts a link between the host and the network namespace of `pid`, and a route to the Services over it."""
    _run("link", "add", layout.link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _run("address", "add", f"{layout.host_address}/30", "dev", layout.link)
    _run("link", "set", layout.link, "up")
    _run("route", "add", layout.service_network, "via", layout.node_address, "dev", layout.link)


def disconnect(layout: Layout) -> None:
    """Takes the link away where it still is; its routes go with it."""
    with suppress(SandboxError):  # the kernel takes it away with the namespace, maybe just now
        _run("link", "delete", layout.link)


def _ip(*arguments: str) -> list[dict[str, str]]:
    done = subprocess.run(["ip", "-json", *arguments], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout or "[]"))


def _run(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}. {INSTEAD}")
