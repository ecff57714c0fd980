"""Is a copy what its manifest says? Quick: every size (and the store's tag). Full: every byte is read and hashed.

Standard library only (the store is handed in): a copy on a node can be verified in any Python image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UnverifiedError
from .limits import Stop
from .manifest import MANIFEST, Entry, Manifest, Source, read_manifest
from .parts import Digests, PartPlan, ordered, plan_parts
from .progress import Progress

if TYPE_CHECKING:
    from .memory import Budget
    from .stores import Store, Stored

REMEDY = "Stage it again: what is right stays, what is not is copied anew"


def differences(manifest: Manifest, present: Mapping[str, Stored]) -> list[str]:
    """What the listing of a store has that the manifest has not, by size and tag; empty when they agree."""
    wrong = []
    for entry in manifest.files:
        held = present.get(entry.path)
        if held is None:
            wrong.append(f"{entry.path} is missing")
        elif held.size != entry.size:
            wrong.append(f"{entry.path} has {held.size} bytes instead of {entry.size}")
        elif entry.e_tag and held.e_tag != entry.e_tag:
            wrong.append(f"{entry.path} was written over since it was verified")
    return wrong


def digests_of_object(
    store: Store, path: str, *, size: int, plan: PartPlan, pool: Executor, stop: Stop, git_size: int | None = None
) -> Digests:
    """The hashes of an object whose parts are read side by side. Raises FileNotFoundError, StoreError, StoppedError."""

    def fetch(offset: int, length: int) -> tuple[Any]:
        stop.check()
        return (store.read(path, offset, length),)

    digests = Digests(git_size=git_size)
    for part in ordered(fetch, size=size, plan=plan, pool=pool):
        digests.update(part)
    return digests


def manifest_of(store: Store, source: Source) -> Manifest:
    """The manifest of a finished copy in a store. Raises UnverifiedError when there is none for this source."""
    path = f"{source.prefix}/{MANIFEST}"
    data = store.get(path)
    if data is None:
        raise UnverifiedError(f"{store} has no finished copy of {source}: {path} is missing", remedy="Stage it first")
    return matching(read_manifest(data, where=f"{store}/{path}"), source, where=str(store))


def matching(manifest: Manifest, source: Source, *, where: str) -> Manifest:
    """The manifest, if it is the source's, with the same patterns. Raises UnverifiedError."""
    if manifest.source.prefix != source.prefix:
        raise UnverifiedError(f"{where} holds {manifest.source} in the place of {source}", remedy=REMEDY)
    if manifest.source != source:
        raise UnverifiedError(
            f"{where} holds {source} as staged with {manifest.source.patterns}, not with {source.patterns}",
            remedy="Name the patterns that it was staged with, or stage it again with these",
        )
    return manifest


def verify_store(
    store: Store,
    source: Source,
    *,
    full: bool,
    pool: Executor,
    parallel_files: int,
    budget: Budget,
    stop: Stop,
    progress: Progress,
) -> Manifest:
    """Raises UnverifiedError, naming what is wrong, unless the copy is what its manifest says."""
    manifest = manifest_of(store, source)
    wrong = differences(manifest, store.listing(source.prefix))
    if full and not wrong:

        def hashed(entry: Entry) -> str:
            with budget.reserved(plan_parts(entry.size, budget=budget.most)) as plan:
                path = f"{source.prefix}/{entry.path}"
                found = digests_of_object(store, path, size=entry.size, plan=plan, pool=pool, stop=stop).sha256
            progress.moved(entry.size)
            return found

        wrong = _each_hashed(manifest, hashed, parallel_files=parallel_files, stop=stop, progress=progress)
    return _accepted(manifest, wrong, where=f"{store}/{source.prefix}")


def verify_directory(
    directory: Path, source: Source, *, full: bool, stop: Stop, progress: Progress, parallel_files: int = 4
) -> Manifest:
    """The same for a copy on a node. Raises UnverifiedError, StoppedError."""
    place = directory / source.prefix
    try:
        data = (place / MANIFEST).read_bytes()
    except OSError as error:
        raise UnverifiedError(
            f"{place} has no finished copy of {source} ({error.strerror})", remedy="Let `hydrate` fill it first"
        ) from None
    manifest = matching(read_manifest(data, where=str(place / MANIFEST)), source, where=str(place))
    wrong = [problem for entry in manifest.files if (problem := _size_problem(place / entry.path, entry))]
    if full and not wrong:

        def hashed(entry: Entry) -> str:
            return sha256_of_file(place / entry.path, stop=stop, moved=progress.moved)

        wrong = _each_hashed(manifest, hashed, parallel_files=parallel_files, stop=stop, progress=progress)
    return _accepted(manifest, wrong, where=str(place))


def _each_hashed(
    manifest: Manifest, hashed: Callable[[Entry], str], *, parallel_files: int, stop: Stop, progress: Progress
) -> list[str]:
    """What is wrong with the files' bytes. Raises what `hashed` raises, but for a file that is gone or can't be read."""
    progress.expect(files=len(manifest.files), size=manifest.size)

    def check(entry: Entry) -> str | None:
        stop.check()
        try:
            found = hashed(entry)
        except FileNotFoundError:
            return f"{entry.path} is missing"
        except OSError as error:  # a disk that fails, or no right to read it
            return f"{entry.path} can't be read ({error.strerror or error})"
        progress.finished()
        return None if found == entry.sha256 else f"{entry.path} has SHA-256 {found} instead of {entry.sha256}"

    with ThreadPoolExecutor(parallel_files, thread_name_prefix="verify") as workers:
        return [problem for problem in workers.map(check, manifest.files) if problem]


def sha256_of_file(path: Path, *, stop: Stop, moved: Callable[[int], None] = lambda size: None) -> str:
    """SHA-256 of a file on disk. moved: told of the bytes as they are read. Raises OSError, StoppedError."""
    digests = Digests()
    with path.open("rb", buffering=0) as handle:
        buffer = bytearray(8 * 1024 * 1024)
        view = memoryview(buffer)
        while got := handle.readinto(buffer):
            stop.check()
            digests.update(view[:got])
            moved(got)
    return digests.sha256


def _size_problem(path: Path, entry: Entry) -> str | None:
    try:
        size = path.stat().st_size
    except OSError:
        return f"{entry.path} is missing"
    return None if size == entry.size else f"{entry.path} has {size} bytes instead of {entry.size}"


def _accepted(manifest: Manifest, wrong: list[str], *, where: str) -> Manifest:
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UnverifiedError(f"{where} is not the verified copy: {'; '.join(wrong[:3])}{more}", remedy=REMEDY)
    return manifest
