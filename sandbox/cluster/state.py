"""The directory that a cluster keeps everything in: whose it is, who works on it, how it is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.cluster.errors import SandboxError

MARK = "EMBEDDED-CLUSTER"
"""Written first and removed last, so that a directory which is half written or half removed is known as ours."""

DESCRIPTION = "cluster.json"


def make(state: Path) -> None:
    """Makes the directory where it is missing; raises SandboxError when it holds other things than a cluster's state."""
    if state.exists() and not _is_ours(state):
        raise SandboxError(
            f"{state} holds other things than an embedded cluster's state. Name a directory of its own: --state=…"
        )
    state.mkdir(parents=True, exist_ok=True)


def mark(state: Path) -> None:
    """Says in the directory whose it is. Only call it with the lock held."""
    (state / MARK).write_text("`sandbox down` removes this directory.\n")


def remove(state: Path) -> None:
    """Removes the directory; raises SandboxError when it holds other things than a cluster's state."""
    if not _is_ours(state):
        raise SandboxError(f"{state} is not an embedded cluster's directory, so it is left as it is.")
    clear(state)
    (state / MARK).unlink(missing_ok=True)
    state.rmdir()


def clear(state: Path, *, keep: tuple[str, ...] = ()) -> None:
    """Removes what the directory holds, but for the mark and `keep`."""
    for path in state.iterdir():
        if path.name in (MARK, *keep):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_ours(state: Path) -> bool:
    if not state.is_dir():
        return False
    held = {path.name for path in state.iterdir()}
    return not held or bool(held & {MARK, DESCRIPTION})


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Holds the lock of an existing state directory; the kernel drops it with the process, however that ends."""
    with _locked(state, fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
        # Another process may have removed it, and a third made it anew, between opening and locking.
        if not held or not state.exists() or not os.path.samestat(os.fstat(held), state.stat()):
            raise SandboxError(
                f"another process starts or stops the cluster in {state}. Wait for it and try again."
            ) from None
        yield


@contextmanager
def one_start_at_a_time() -> Iterator[None]:
    """Holds the machine's lock while a number is chosen and its link is made, so that two clusters don't choose the same."""
    with _locked(Path("/run"), fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[int | None]:
    """Locks a directory itself, which leaves no file behind; None when another process holds it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)
