"""Keeps the image archives in the cache, and loads into a cluster's containerd those that it does not have yet."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from catalog import artifacts
from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import Layout
from sandbox.cluster.processes import CONTAINERD_SOCKET
from sandbox.images.oci import Image, write_archive
from sandbox.images.recipes import recipes
from sandbox.toolchain import cache_directory

MIRROR = "mirror.sandbox.local"
"""Registry name below which every image lies. It resolves nowhere: what is not loaded can't be pulled by accident."""

OWN = {
    "pause": "registry.k8s.io/pause:3.10",
    "coredns": "registry.k8s.io/coredns/coredns:v1.14.5",
}
"""Images of the embedded cluster itself; all others are the catalogue's."""

PAUSE = f"{MIRROR}/{OWN['pause']}"
COREDNS = f"{MIRROR}/{OWN['coredns']}"


def archives() -> dict[str, Path]:
    """Name → archive of every image, made where it is missing."""
    made = {}
    for name, make in recipes().items():
        image = make()
        references = _references(name)
        place = cache_directory() / "images" / f"{name}-{_digest(image, references)}.tar"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_archive(image, place, references=references)
        made[name] = place
    return made


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


def _references(name: str) -> list[str]:
    rows = {row.name: row.reference for row in vars(artifacts).values() if isinstance(row, artifacts.Image)}
    return [f"{MIRROR}/{(OWN | rows)[name]}"]


def _digest(image: Image, references: list[str]) -> str:
    """Of all that decides the archive's bytes. Files are told by path, size and time: they lie in caches whose names hold their own hashes."""
    digest = hashlib.sha256(
        repr(
            (sys.version, references, image.entrypoint, image.texts, image.links, image.environment, image.user)
        ).encode()
    )
    for path, file in sorted(image.files.items()):
        status = file.stat()
        digest.update(f"{path}\0{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
