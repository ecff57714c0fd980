"""Loads images into a cluster's containerd: those that it does not have yet."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import Layout
from sandbox.cluster.processes import CONTAINERD_ROOT, CONTAINERD_SOCKET
from sandbox.cluster.supervised import pid_of
from sandbox.images import archives


def load_into(layout: Layout, names: Collection[str] | None = None) -> None:
    """Loads those of the named images (all, when none is named) that the cluster's containerd does not have."""
    record = layout.state / Path(CONTAINERD_ROOT).name / "loaded.json"
    loaded = _loaded(record)
    wanted = {
        name: path
        for name, path in archives().items()
        if (names is None or name in names) and loaded.get(name) != path.name
    }
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda path: _import(layout, path), wanted.values()))
    if wanted:
        fresh = record.with_name(f".{record.name}")
        fresh.write_text(json.dumps(loaded | {name: path.name for name, path in wanted.items()}))
        fresh.replace(record)


def _loaded(record: Path) -> dict[str, str]:
    """Image → archive that it came from, as recorded beside containerd's own data, with which it goes."""
    try:
        return dict(json.loads(record.read_text()))
    except (OSError, ValueError):
        return {}


def _import(layout: Layout, archive: Path) -> None:
    """Stores an archive's content. containerd unpacks it when its first container starts, which most don't have to wait for here."""
    inside = ["nsenter", f"--target={pid_of(layout.state)}", "--mount", "--pid", "--"]
    ctr = ["ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", "images", "import", "--no-unpack"]
    done = subprocess.run([*inside, *ctr, str(archive)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"loading {archive.name} into containerd failed: {done.stderr.strip()}")
