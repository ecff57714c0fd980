"""The Debian packages that a real node needs; installs the missing ones where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ipset": "ipset",
    "ip": "iproute2",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
"""Program → the Debian package that brings it."""


def missing_packages() -> list[str]:
    """Debian packages whose programs are not on this machine."""
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def install_command(packages: list[str]) -> list[str]:
    """The command that installs the packages on Debian and its kin."""
    return ["apt-get", "install", "--yes", "--no-install-recommends", *packages]


def main() -> int:
    packages = missing_packages()
    if not packages:
        return 0
    command = install_command(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(
            f"packages: a real node needs {', '.join(packages)}. On Debian, as root: {' '.join(command)}. "
            "Elsewhere use your own cluster: KUBECONFIG=… make up. What needs a real node counts as not run.",
            file=sys.stderr,
        )
        return 0
    print(f"packages: {' '.join(command)}", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update"], command):
        done = subprocess.run(step, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"packages: `{' '.join(step)}` failed:\n{(done.stderr or done.stdout).strip()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
