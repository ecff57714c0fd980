"""Writes an OCI image archive, without a daemon. The same content gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What goes into one layer.

    files: path in the image → file on this machine; links: path in the image → where it points; texts: path in the image → content.
    directories: empty ones, world-writable with the sticky bit like /tmp.
    """

    files: dict[str, Path]
    links: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    directories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Image:
    """Layers from the lowest to the highest, and how the image is run. A layer that images share is stored once in a cluster."""

    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "65532:65532"


def write_archive(image: Image, target: Path, *, references: Iterable[str]) -> str:
    """Writes the archive under every reference and returns the manifest's digest. A reference may end in @DIGEST for its own digest.

    The archive appears whole, by one rename.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        blobs = [_write_layer(layer, Path(scratch, str(number))) for number, layer in enumerate(image.layers)]
        config, manifest = _describe(image, blobs)
        digest = _sha256(manifest)
        fresh = Path(scratch, "archive")
        with tarfile.open(fresh, "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            _add(archive, "index.json", _index(digest, len(manifest), references))
            for blob in (manifest, config):
                _add(archive, _place(_sha256(blob)), blob)
            for layer in blobs:
                entry = tarfile.TarInfo(_place(layer.digest))
                entry.size = layer.size
                with layer.path.open("rb") as content:
                    archive.addfile(entry, content)
        fresh.replace(target)
    return digest


def tree(source: Path, *, at: str, leave_out: Iterable[str] = ()) -> Iterator[tuple[str, Path]]:
    """The files below a directory, as (path in the image, file); `leave_out` names directories and files that are skipped at any depth."""
    skipped = set(leave_out)
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name not in skipped)
        for name in sorted(set(files) - skipped):
            file = Path(folder, name)
            yield str(PurePosixPath(at) / file.relative_to(source)), file


@dataclass(frozen=True, kw_only=True)
class _Blob:
    path: Path
    digest: str
    size: int


def _describe(image: Image, layers: list[_Blob]) -> tuple[bytes, bytes]:
    """The image's config and its manifest. The layers are not compressed: they travel from a disk to the same disk."""
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Entrypoint": list(image.entrypoint),
                "Env": [f"{key}={value}" for key, value in image.environment.items()],
                "User": image.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": _sha256(config),
                "size": len(config),
            },
            "layers": [
                {
                    "mediaType": "application/vnd.oci.image.layer.v1.tar",
                    "digest": layer.digest,
                    "size": layer.size,
                }
                for layer in layers
            ],
        }
    )
    return config, manifest


def _index(digest: str, size: int, references: Iterable[str]) -> bytes:
    """The archive's table of contents: the one manifest under each of its names."""
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [
                {
                    "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "digest": digest,
                    "size": size,
                    "platform": {"architecture": "amd64", "os": "linux"},
                    "annotations": {"io.containerd.image.name": reference.replace("@DIGEST", f"@{digest}")},
                }
                for reference in references
            ],
        }
    )


class _Hashing(io.RawIOBase):
    """Hashes and counts what is written through it."""

    def __init__(self, sink: io.BufferedWriter) -> None:
        self.sink, self.sha256, self.size = sink, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        self.size += len(data)
        return self.sink.write(data)


def _write_layer(layer: Layer, target: Path) -> _Blob:
    with target.open("wb") as sink:
        hashing = _Hashing(sink)
        with tarfile.open(fileobj=hashing, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            made: set[str] = set()
            for path, file in sorted(layer.files.items()):
                _parents(archive, path, made)
                entry = _entry(path, mode=0o755 if os.access(file, os.X_OK) else 0o644)
                entry.size = file.stat().st_size
                with file.open("rb") as content:
                    archive.addfile(entry, content)
            for path, target_path in sorted(layer.links.items()):
                _parents(archive, path, made)
                entry = _entry(path, mode=0o777)
                entry.type, entry.linkname = tarfile.SYMTYPE, target_path
                archive.addfile(entry)
            for path, text in sorted(layer.texts.items()):
                _parents(archive, path, made)
                entry = _entry(path, mode=0o644)
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
            for path in layer.directories:
                _parents(archive, path, made)
                entry = _entry(path, mode=0o1777)
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
        return _Blob(path=target, digest=f"sha256:{hashing.sha256.hexdigest()}", size=hashing.size)


def _parents(layer: tarfile.TarFile, path: str, made: set[str]) -> None:
    for parent in reversed(PurePosixPath(path.lstrip("/")).parents):
        name = str(parent)
        if name != "." and name not in made:
            made.add(name)
            entry = _entry(name, mode=0o755)
            entry.type = tarfile.DIRTYPE
            layer.addfile(entry)


def _entry(path: str, *, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.mode = mode
    return entry


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _place(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
