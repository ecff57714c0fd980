"""Keeps the image archives in the cache, one for each image of the embedded cluster."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from catalog import artifacts
from sandbox.images.oci import Image, write_archive
from sandbox.images.recipes import recipes
from sandbox.toolchain import cache_directory

MIRROR = "mirror.sandbox.local"
"""Registry name below which every image lies. It resolves nowhere: what is not loaded can't be pulled by accident."""

PAUSE = artifacts.image("pause", mirror=MIRROR)
COREDNS = artifacts.image("coredns", mirror=MIRROR)


def archives() -> dict[str, Path]:
    """Name → archive of every image, made where it is missing."""
    made = {}
    for name, make in recipes().items():
        image = make()
        references = [artifacts.image(name, mirror=MIRROR)]
        place = cache_directory() / "images" / f"{name}-{_digest(image, references)}.tar"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_archive(image, place, references=references)
        made[name] = place
    return made


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
