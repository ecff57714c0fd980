"""What a store or a directory holds, and how an old revision is removed from it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import UnverifiedError
from .manifest import MANIFEST, OWN, RECEIPTS, Source, read_manifest
from .stores import Store
from .verify import differences


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One revision that is there. state: complete (by size and tag), or what is wrong, or how far it got."""

    repo: str
    revision: str
    state: str
    files: int
    bytes: int


def copies(store: Store) -> list[Copy]:
    """Every revision below the store's base path."""
    return [
        _copy_in_store(store, Source(repo=f"{owner}/{name}", revision=revision))
        for owner in store.folders()
        for name in store.folders(owner)
        for revision in store.folders(f"{owner}/{name}")
    ]


def _copy_in_store(store: Store, source: Source) -> Copy:
    present = store.listing(source.prefix)
    files = {path: held for path, held in present.items() if not path.startswith(OWN + "/")}
    done = sum(path.startswith(RECEIPTS + "/") for path in present)
    state = f"{done} files verified, no manifest yet"
    if (data := store.get(f"{source.prefix}/{MANIFEST}")) is not None:
        try:
            wrong = differences(read_manifest(data, where=source.prefix), present)
            state = f"damaged: {'; '.join(wrong[:3])}" if wrong else "complete"
        except UnverifiedError as error:
            state = error.what
    return Copy(
        repo=source.repo,
        revision=source.revision,
        state=state,
        files=len(files),
        bytes=sum(held.size for held in files.values()),
    )


def remove_from_store(store: Store, source: Source) -> int:
    """Removes a copy, its manifest first, so that nobody takes the rest for whole. Returns the number of objects."""
    present = store.listing(source.prefix)
    store.delete([f"{source.prefix}/{MANIFEST}"] if MANIFEST in present else [])
    rest = [f"{source.prefix}/{path}" for path in present if path != MANIFEST]
    store.delete(rest)
    store.drop_open_uploads(source.prefix)
    return len(present)


def remove_from_directory(directory: Path, source: Source) -> bool:
    """The same on a node. Returns whether there was a copy."""
    place = directory / source.prefix
    if not place.is_dir():
        return False
    (place / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(place)
    return True
