"""The objects in a cluster, by kubectl."""

from __future__ import annotations

import os
import subprocess

from sandbox import toolchain
from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import Layout


def kubectl_command(layout: Layout, *arguments: str) -> list[str]:
    """kubectl as the administrator. It keeps what it learns of the API in the state directory and not in the user's home."""
    kube = str(toolchain.tool("kube"))
    return [
        kube,
        "kubectl",
        f"--kubeconfig={layout.kubeconfig}",
        f"--cache-dir={layout.state / 'kubectl'}",
        *arguments,
    ]


def kubectl(layout: Layout, *arguments: str, given: str | None = None) -> str:
    """Runs kubectl with `given` on its standard input; raises SandboxError with what it said."""
    # The machine's proxy, where it has one, does not know the cluster.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        kubectl_command(layout, *arguments),
        input=given,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SandboxError(f"kubectl {' '.join(arguments[:2])}: {done.stderr.strip()}. Logs: {layout.logs}")
    return done.stdout
