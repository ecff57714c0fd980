"""Loads images into a cluster's containerd: those that it does not have yet."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import Layout
from sandbox.cluster.processes import CONTAINERD_SOCKET
from sandbox.images import archives


def load_into(pid: int, layout: Layout) -> None:
    """Loads what is missing into the containerd in the namespaces of process `pid`."""
    record = layout.state / "images.json"
    try:
        loaded: dict[str, str] = json.loads(record.read_text())
    except (OSError, ValueError):
        loaded = {}
    wanted = {name: path for name, path in archives().items() if loaded.get(name) != path.name}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda path: _import(pid, path), wanted.values()))
    if wanted:
        fresh = record.with_name(".images.json")
        fresh.write_text(json.dumps(loaded | {name: path.name for name, path in wanted.items()}))
        fresh.replace(record)


def _import(pid: int, archive: Path) -> None:
    command = [
        "nsenter",
        "--target",
        str(pid),
        "--mount",
        "--pid",
        "--",
        "ctr",
        f"--address={CONTAINERD_SOCKET}",
        "--namespace=k8s.io",
    ]
    done = subprocess.run([*command, "images", "import", str(archive)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"loading {archive.name} into containerd failed: {done.stderr.strip()}")
