"""Hub → object store. A copy is complete when, and only when, its manifest is there; that is written last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Any

from .errors import ConflictError, ContentError, StagingError, StoreError, UnverifiedError
from .hub import HubClient, RemoteFile
from .limits import Patience, Stop
from .manifest import MANIFEST, OWN, RECEIPTS, Entry, Manifest, OtherFormatError, Source, read_entry, read_manifest
from .memory import Budget
from .parts import Digests, PartPlan, ordered, plan_parts
from .progress import Progress, say
from .stores import DeniedError, Store, Stored, TransientStoreError
from .verify import differences, digests_of_object

TRIES = 4
"""Of one file, when its bytes are wrong or the store fails."""


@dataclass(frozen=True, kw_only=True)
class Staging:
    """What `stage` works with. pool: fetches parts. parallel_files: copied side by side."""

    store: Store
    hub: HubClient
    pool: ThreadPoolExecutor
    parallel_files: int
    budget: Budget
    patience: Patience
    stop: Stop
    progress: Progress


def stage(run: Staging, source: Source) -> tuple[Manifest, bool]:
    """Makes the store's copy of `source` complete. Returns its manifest, and whether there was anything to do.

    Raises a StagingError; then no manifest is there, and the finished files stay for the next run.
    """
    try:
        return _stage(run, source)
    except StagingError:
        # obstore aborts an upload that fails, but a part that is on its way then can keep it open.
        _drop_open_uploads(run.store, source)
        raise


def _stage(run: Staging, source: Source) -> tuple[Manifest, bool]:
    known = complete_manifest(run.store, source)
    if known is not None:
        return known, False
    remote = run.hub.listing(source)
    run.progress.expect(files=len(remote), size=sum(file.size for file in remote))
    present = run.store.listing(source.prefix)
    receipts = _receipts(run, source, present)
    # Small files first: a missing right shows in seconds. Then the large ones, largest first, so that none starts last.
    order = sorted(remote, key=lambda file: (file.size > 1_000_000, -file.size))
    entries = _each_file(run, source, order, present, receipts)
    entries = _settle(run, source, remote, entries)
    run.stop.check()
    manifest = Manifest(source=source, files=tuple(entries.values()))
    run.store.put(f"{source.prefix}/{MANIFEST}", manifest.to_json())
    clean_up(run.store, source)
    return manifest, True


def complete_manifest(store: Store, source: Source) -> Manifest | None:
    """The manifest of a finished copy of exactly this source, after a look at every object's size and tag.

    A manifest that its objects contradict is removed, so that nobody trusts it while they are copied again.
    Raises ConflictError when the place holds something else.
    """
    path = f"{source.prefix}/{MANIFEST}"
    data = store.get(path)
    if data is None:
        return None
    try:
        manifest = read_manifest(data, where=f"{store}/{path}")
    except OtherFormatError:
        raise
    except UnverifiedError as error:
        say(f"{source}: {error.what}; the copy is verified and its manifest written anew")
        store.delete([path])
        return None
    held = manifest.source
    if (held.repo, held.revision) != (source.repo, source.revision):
        raise ConflictError(
            f"{store}/{source.prefix} holds {held}, not {source}",
            remedy="Remove what is there, or stage to another base path; a revision is never written over another",
        )
    if (held.allow, held.ignore) != (source.allow, source.ignore):
        say(f"{source}: the copy was made with other patterns; it is brought in line")
    elif wrong := differences(manifest, present := store.listing(source.prefix)):
        say(f"{source}: the copy is damaged and is repaired: {'; '.join(wrong[:3])}")
    else:
        if any(found.startswith(RECEIPTS) for found in present):
            clean_up(store, source)
        return manifest
    store.delete([path])
    return None


def clean_up(store: Store, source: Source) -> None:
    """Drops what a finished copy does not need: uploads that a killed run left open and, as the sign that they are gone,
    the receipts last."""
    _drop_open_uploads(store, source)
    receipts = list(store.listing(f"{source.prefix}/{RECEIPTS}"))
    store.delete(f"{source.prefix}/{RECEIPTS}/{path}" for path in receipts)


def _drop_open_uploads(store: Store, source: Source) -> None:
    try:
        if dropped := store.drop_open_uploads(source.prefix):
            say(f"{source}: dropped {dropped} uploads that were left open")
    except StoreError as error:
        say(f"note: {error}")


def _receipts(run: Staging, source: Source, present: dict[str, Stored]) -> dict[str, Entry]:
    """What earlier runs finished and verified."""
    prefix = RECEIPTS + "/"
    paths = [path for path in present if path.startswith(prefix)]
    found = run.pool.map(lambda path: _receipt(run.store, source, path.removeprefix(prefix)), paths)
    return {entry.path: entry for entry in found if entry is not None}


def _receipt(store: Store, source: Source, path: str) -> Entry | None:
    data = store.get(f"{source.prefix}/{RECEIPTS}/{path}")
    try:
        return read_entry(json.loads(data)) if data is not None else None
    except (ValueError, KeyError, TypeError, ContentError):
        return None


def _each_file(
    run: Staging, source: Source, files: list[RemoteFile], present: dict[str, Stored], receipts: dict[str, Entry]
) -> dict[str, Entry]:
    """Settles every file, `parallel_files` at a time. The first error stops the others."""
    entries: dict[str, Entry] = {}

    def one(file: RemoteFile) -> None:
        entries[file.path] = _file(run, source, file, present.get(file.path), receipts.get(file.path))

    with ThreadPoolExecutor(run.parallel_files, thread_name_prefix="file") as workers:
        futures = [workers.submit(one, file) for file in files]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        if failed := [future for future in done if not future.cancelled() and future.exception()]:
            for future in futures:
                future.cancel()
            run.stop.set()
            wait(futures)
            raise _first_cause(failed[0].exception(), [future for future in futures if not future.cancelled()])
    return entries


def _first_cause(error: BaseException | None, futures: list[Any]) -> BaseException:
    """The error that the others followed from: they only say that they were stopped."""
    causes = [future.exception() for future in futures if future.exception() is not None]
    return next((cause for cause in causes if getattr(cause, "exit_code", 1) != 143), error or RuntimeError("no error"))


def _file(run: Staging, source: Source, file: RemoteFile, held: Stored | None, receipt: Entry | None) -> Entry:
    """One file: kept, verified by reading it back, or copied."""
    if held is not None and held.size == file.size:
        if receipt is not None and receipt.e_tag == held.e_tag and _fits(receipt, file):
            run.progress.already(file.size)
            return receipt
        if (entry := _read_back(run, source, file, held)) is not None:
            run.progress.already(file.size)
            return entry
    return _copy_patiently(run, source, file)


def _fits(entry: Entry, file: RemoteFile) -> bool:
    same = entry.sha256 == file.sha256 if file.sha256 else entry.git_blob == file.git_blob
    return same and entry.size == file.size


def _read_back(run: Staging, source: Source, file: RemoteFile, held: Stored) -> Entry | None:
    """The entry of an object that nobody vouches for, if its bytes are right: reading is cheaper than copying."""
    git_size = file.size if file.git_blob else None
    try:
        with run.budget.reserved(plan_parts(file.size, budget=run.budget.most)) as plan:
            digests = digests_of_object(
                run.store,
                f"{source.prefix}/{file.path}",
                size=file.size,
                plan=plan,
                pool=run.pool,
                stop=run.stop,
                git_size=git_size,
            )
    except FileNotFoundError:
        return None
    entry = _entry(file, digests, held)
    if not _fits(entry, file):
        say(f"{source.repo}/{file.path}: the store holds other bytes; copied again")
        return None
    _keep_receipt(run.store, source, entry)
    return entry


def _entry(file: RemoteFile, digests: Digests, held: Stored) -> Entry:
    return Entry(
        path=file.path,
        size=file.size,
        sha256=digests.sha256,
        git_blob=digests.git_blob,
        e_tag=held.e_tag,
    )


def _keep_receipt(store: Store, source: Source, entry: Entry) -> None:
    store.put(f"{source.prefix}/{RECEIPTS}/{entry.path}", json.dumps(asdict(entry), ensure_ascii=False).encode())


def _copy_patiently(run: Staging, source: Source, file: RemoteFile) -> Entry:
    """Copies a file, up to TRIES times while its bytes are wrong or the store fails."""
    for attempt in range(1, TRIES + 1):
        run.stop.check()
        if (entry := _done_by_another(run.store, source, file)) is not None:
            run.progress.already(file.size)
            return entry
        before = _Moved()
        try:
            with run.budget.reserved(plan_parts(file.size, budget=run.budget.most)) as plan:
                entry = _copy(run, source, file, plan, before)
            run.progress.finished()
            return entry
        except (WrongBytesError, TransientStoreError) as error:
            run.progress.moved(-before.bytes)
            if attempt == TRIES:
                raise
            run.progress.retried()
            say(f"{source.repo}/{file.path}: {error.what}; copying it again")
            run.stop.sleep(run.patience.pause(attempt))
    raise AssertionError("the last try returns or raises")


def _done_by_another(store: Store, source: Source, file: RemoteFile) -> Entry | None:
    """The file's entry, if another run has finished it: its receipt, or its manifest once the receipts are gone."""
    entry = _receipt(store, source, file.path)
    if entry is None and (data := store.get(f"{source.prefix}/{MANIFEST}")) is not None:
        manifest = read_manifest(data, where=str(store))
        entry = next((found for found in manifest.files if found.path == file.path), None)
    if entry is None or not _fits(entry, file):
        return None
    return entry if store.head(f"{source.prefix}/{file.path}") == Stored(size=file.size, e_tag=entry.e_tag) else None


class WrongBytesError(ContentError):
    """The bytes that came do not have the listed hash."""


class _Moved:
    """Bytes of this try, to be taken back when it fails."""

    bytes = 0


def _copy(run: Staging, source: Source, file: RemoteFile, plan: PartPlan, moved: _Moved) -> Entry:
    """Streams one file into the store. The last part is handed over only when the whole has the right hash."""
    digests = Digests(git_size=file.size if file.git_blob else None)
    path = f"{source.prefix}/{file.path}"

    def fetch(offset: int, length: int) -> list[bytes]:
        blocks = run.hub.fetch(source, file, offset, length)
        moved.bytes += length
        run.progress.moved(length)
        return blocks

    def checked() -> Iterator[bytes]:
        seen = 0
        for block in ordered(fetch, size=file.size, plan=plan, pool=run.pool):
            run.stop.check()
            digests.update(block)
            seen += len(block)
            if seen == file.size:
                _check(file, digests)
            yield block

    if file.size <= plan.size:
        whole = b"".join(checked())
        _check(file, digests)
        held = run.store.put(path, whole)
    else:
        held = run.store.put_parts(path, checked(), size=file.size, plan=plan)
    entry = _entry(file, digests, held)
    _keep_receipt(run.store, source, entry)
    return entry


def _check(file: RemoteFile, digests: Digests) -> None:
    expected, found = (file.sha256, digests.sha256) if file.sha256 else (file.git_blob, digests.git_blob)
    if expected != found:
        raise WrongBytesError(
            f"{file.path} has {'SHA-256' if file.sha256 else 'git id'} {found}, the hub lists {expected}",
            remedy="Run it again; when it stays so, the file on the hub is damaged: report it to the repository's owner",
        )


def _settle(run: Staging, source: Source, remote: list[RemoteFile], entries: dict[str, Entry]) -> dict[str, Entry]:
    """A last look at the store before the manifest vouches for it: what somebody wrote meanwhile is verified anew."""
    for _ in range(TRIES):
        present = run.store.listing(source.prefix)
        _drop_strangers(run.store, source, present, wanted=set(entries))
        off = [
            file
            for file in remote
            if (held := present.get(file.path)) is None
            or (held.size, held.e_tag) != (file.size, entries[file.path].e_tag)
        ]
        if not off:
            return entries
        say(f"{source}: {len(off)} objects changed since they were verified; verifying them again")
        entries = entries | _each_file(run, source, off, present, {})
    raise ConflictError(
        f"objects in {run.store}/{source.prefix} keep changing", remedy="Let one stager finish, then run it again"
    )


def _drop_strangers(store: Store, source: Source, present: dict[str, Stored], *, wanted: set[str]) -> None:
    """Deletes objects that are none of the copy's: engines and volume populators take all that lies there."""
    strangers = [path for path in present if path not in wanted and not path.startswith(OWN + "/")]
    if strangers:
        say(f"{source}: {len(strangers)} objects do not belong to it and are removed, the first: {strangers[0]}")
        try:
            store.delete(f"{source.prefix}/{path}" for path in strangers)
        except DeniedError as error:
            # Hydration takes what the manifest names; only who mounts or copies the folder itself would meet them.
            say(f"note: they stay: {error.what}")
