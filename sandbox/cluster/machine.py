"""Whether this machine can run an embedded cluster, and if not, everything that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sandbox.cluster.cgroups import control_group_roots
from sandbox.cluster.errors import INSTEAD, SandboxError
from sandbox.cluster.layout import Profile
from sandbox.packages import install_command, missing_packages

NAMESPACES = ("--pid", "--mount", "--net", "--uts", "--ipc")

ROOM = {Profile.NODE: 2 * 1024**3, Profile.CONTROL_PLANE: 256 * 1024**2}
"""Bytes that must be free in the state directory. Measured 2026-12-01: images 1.2 GB, and some for etcd, volumes and logs."""

_LINKS = ("ip link add probe0 type veth peer name probe1",)
_NODE = (
    "mount -t tmpfs tmpfs /tmp && mkdir /tmp/a /tmp/b /tmp/c && mount -t overlay -o lowerdir=/tmp/a:/tmp/b overlay /tmp/c",
    "iptables -t nat -A OUTPUT -m comment --comment probe -m statistic --mode random --probability 0.5 -j ACCEPT",
    "ipset create probe hash:ip",
)
"""What the container runtime, kube-proxy and kube-router do first."""


def check_machine(profile: Profile) -> None:
    """Raises SandboxError with everything that keeps this machine from running the profile. Changes nothing."""
    check_user()
    absent = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    packages = missing_packages() if profile is Profile.NODE else []
    if absent or packages:
        words = ([f"the programs {', '.join(absent)} (util-linux, iproute2)"] if absent else []) + packages
        raise SandboxError(
            f"missing: {', '.join(words)}. "
            + (f"On Debian: {' '.join(install_command(packages))}. " if packages else "Install them. ")
            + INSTEAD
        )
    reasons = _refused("true")
    if reasons:
        raise SandboxError(f"this kernel or container refuses new namespaces ({reasons}). {INSTEAD}")
    probes = _LINKS + (_NODE if profile is Profile.NODE else ())
    reasons = "; ".join(f"`{probe}`: {said}" for probe in probes if (said := _refused(probe)))
    sealed = [str(root) for root in control_group_roots() if not os.access(root, os.W_OK)]
    if profile is Profile.NODE and sealed:
        reasons = "; ".join(
            [*filter(None, [reasons]), f"no control groups can be made in {', '.join(sealed)} (a container?)"]
        )
    if reasons:
        raise SandboxError(f"this kernel or container lacks what the embedded cluster needs: {reasons}. {INSTEAD}")


def check_user() -> None:
    """Raises SandboxError for everyone but root."""
    if os.geteuid() != 0:
        raise SandboxError(
            f"the embedded cluster makes namespaces and network links, which takes root; you are user {os.geteuid()}. "
            f"Use sudo. {INSTEAD}"
        )


def check_room(state: Path, profile: Profile) -> None:
    """Raises SandboxError when the disk of a new state directory is too full for it."""
    free = shutil.disk_usage(state).free
    if free < ROOM[profile]:
        raise SandboxError(
            f"{state} has {free >> 20} MiB free, and a new cluster takes up to {ROOM[profile] >> 20} MiB. "
            "Free some room, or name a directory on a larger disk: sandbox --state=… up."
        )


def _refused(command: str) -> str:
    """What the kernel says when a command is tried in fresh namespaces; empty when it may."""
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "--mount-proc", "sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode == 0:
        return ""
    return (tried.stderr or tried.stdout).strip().rpartition("\n")[2] or f"exit code {tried.returncode}"
