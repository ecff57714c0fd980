"""Object store → a directory of a node. The manifest is copied last; it marks the copy as complete there too."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ContentError, StoreError, UnverifiedError
from .limits import Patience, Stop
from .manifest import MANIFEST, OWN, Entry, Manifest, Source
from .memory import Budget
from .parts import Digests, PartPlan, ordered, plan_parts
from .progress import Progress, say
from .stores import Store, TransientStoreError
from .verify import manifest_of, sha256_of_file, verify_directory

TRIES = 4
PARTIAL = ".partial"
RESERVE_BYTES = 1024**3
"""Room that a disk keeps for others."""


@dataclass(frozen=True, kw_only=True)
class Hydration:
    """What `hydrate` works with."""

    store: Store
    directory: Path
    pool: ThreadPoolExecutor
    parallel_files: int
    budget: Budget
    patience: Patience
    stop: Stop
    progress: Progress


def hydrate(run: Hydration, source: Source) -> tuple[Manifest, bool]:
    """Makes the directory's copy of `source` complete. Returns the manifest, and whether there was anything to do.

    A file appears under its name when its hash is right and it is on disk, never before. One that is there from an
    interrupted run is hashed, not believed. Raises UnverifiedError when the store has no finished copy.
    """
    manifest = manifest_of(run.store, source)
    place = run.directory / source.prefix
    with _alone(place / OWN, run.stop):
        try:
            held = verify_directory(run.directory, source, full=False, stop=run.stop, progress=run.progress)
            if held.to_json() == manifest.to_json():
                return manifest, False
        except UnverifiedError:
            pass
        (place / MANIFEST).unlink(missing_ok=True)
        _clear(place, manifest)
        run.progress.expect(files=len(manifest.files), size=manifest.size)
        missing = _missing(run, place, manifest)
        _check_room(place, missing)
        _each(run, missing, lambda entry: _copy_patiently(run, source, place, entry))
        _write_durably(place / MANIFEST, manifest.to_json())
        os.sync()
    return manifest, True


@contextmanager
def _alone(own: Path, stop: Stop) -> Iterator[None]:
    """One writer a copy. The lock goes with its process, however that ends."""
    try:
        own.mkdir(parents=True, exist_ok=True)
        handle = (own / "lock").open("w")
    except OSError as error:
        raise StoreError(
            f"can't write to {own}: {error.strerror}", remedy="Mount the node's disk there, writable"
        ) from None
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stop.sleep(0.5)
        yield


def _clear(place: Path, manifest: Manifest) -> None:
    """Removes what an interrupted run left and what does not belong to this copy."""
    wanted = {place / entry.path for entry in manifest.files}
    for path in [*place.rglob("*")]:
        if path.is_file() and path not in wanted and path.relative_to(place).parts[0] != OWN:
            path.unlink()


def _missing(run: Hydration, place: Path, manifest: Manifest) -> list[Entry]:
    """The files that have to be copied: those that are not there with the right hash."""
    missing: list[Entry] = []

    def check(entry: Entry) -> None:
        run.stop.check()
        path = place / entry.path
        if path.is_file() and path.stat().st_size == entry.size and sha256_of_file(path, stop=run.stop) == entry.sha256:
            run.progress.already(entry.size)
        else:
            missing.append(entry)

    _each(run, list(manifest.files), check)
    return sorted(missing, key=lambda entry: -entry.size)


def _check_room(place: Path, missing: list[Entry]) -> None:
    needed = sum(entry.size for entry in missing)
    replaced = sum((place / entry.path).stat().st_size for entry in missing if (place / entry.path).is_file())
    disk = os.statvfs(place)
    free = disk.f_bavail * disk.f_frsize + replaced
    if missing and needed + RESERVE_BYTES > free:
        raise StoreError(
            f"{place} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB and {RESERVE_BYTES / 1e9:.1f} GB of reserve are needed",
            remedy="Remove the copy of a revision that is not served any more (`remove --directory`), or use a larger disk",
        )


def _each(run: Hydration, entries: list[Entry], work: Any) -> None:
    with ThreadPoolExecutor(run.parallel_files, thread_name_prefix="file") as workers:
        futures = [workers.submit(work, entry) for entry in entries]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        failed = [future for future in done if not future.cancelled() and future.exception()]
        if failed:
            for future in futures:
                future.cancel()
            run.stop.set()
            wait(futures)
            failed[0].result()


def _copy_patiently(run: Hydration, source: Source, place: Path, entry: Entry) -> None:
    for attempt in range(1, TRIES + 1):
        run.stop.check()
        try:
            with run.budget.reserved(plan_parts(entry.size, budget=run.budget.most)) as plan:
                _copy(run, source, place, entry, plan)
            run.progress.moved(entry.size)
            run.progress.finished()
            return
        except FileNotFoundError:
            raise UnverifiedError(
                f"{entry.path} is not in {run.store}/{source.prefix}", remedy="Stage it again, then hydrate"
            ) from None
        except (ContentError, TransientStoreError) as error:
            if attempt == TRIES:
                raise
            run.progress.retried()
            say(f"{entry.path}: {error.what}; copying it again")
            run.stop.sleep(run.patience.pause(attempt))


def _copy(run: Hydration, source: Source, place: Path, entry: Entry, plan: PartPlan) -> None:
    path = place / entry.path
    partial = path.with_name(path.name + PARTIAL)
    digests = Digests()

    def fetch(offset: int, length: int) -> tuple[Any]:
        run.stop.check()
        return (run.store.read(f"{source.prefix}/{entry.path}", offset, length),)

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb", buffering=0) as handle:
            for part in ordered(fetch, size=entry.size, plan=plan, pool=run.pool):
                digests.update(part)
                _write_all(handle.fileno(), memoryview(part))
            if digests.sha256 != entry.sha256:
                raise ContentError(
                    f"{entry.path} came with SHA-256 {digests.sha256}, the manifest says {entry.sha256}",
                    remedy="Run `verify --full` on the store, then stage it again",
                )
            os.fsync(handle.fileno())
        partial.rename(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not partial.parent.is_dir():
            raise StoreError(f"{place} went away while it was filled", remedy="Check the node's disk") from None
        if error.errno is None:
            raise
        raise StoreError(
            f"can't write {path}: {error.strerror}", remedy="Check the node's disk and the room on it"
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def _write_all(handle: int, data: memoryview) -> None:
    while len(data):
        data = data[os.write(handle, data) :]


def _write_durably(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + PARTIAL)
    with partial.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
