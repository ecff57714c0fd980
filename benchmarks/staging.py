"""Staging against what one would do by hand, on the same servers in the same run: throughput, memory, disk, growth.

Servers: the local hub (Python, sendfile) and versitygw (S3) in processes of their own, data in memory where there is a tmpfs.
Each ratio is the median over rounds in which the contestants take turns, so that a busy machine slows all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent
PROGRAM = PROJECT / "components" / "weights"
HUB = PROJECT / "sandbox" / "hub" / "hub.py"
MIB = 1024 * 1024
REPO = "bench/model"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
PARALLEL = 4
ROUNDS = 3
FILES, FILE_MIB = 12, 192
"""Enough that the half second for loading libraries and signing in, the same for 1 MiB and 1 TiB, does not decide it."""
GROWTH_MIB = (1, 64, 512, 2048)
COUNTS = (10, 100, 500)

PLAIN = """
import hashlib, json, os, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
import obstore
from obstore.store import LocalStore, S3Store
base, target, files, parallel = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
if target.startswith("file://"):
    store = LocalStore(target.removeprefix("file://"), mkdir=True)
else:
    store = S3Store("bucket", prefix=target.removeprefix("s3://bucket/"), endpoint=os.environ["AWS_ENDPOINT_URL"],
        region="us-east-1", client_options={"allow_http": True, "timeout": "300s"})
def copy(item):
    path, expected = item
    digest = hashlib.sha256()
    def blocks():
        with urllib.request.urlopen(f"{base}/{path}") as answer:
            while block := answer.read(8 * 1024 * 1024):
                digest.update(block)
                yield block
    obstore.put(store, path, blocks(), use_multipart=True, chunk_size=8 * 1024 * 1024, max_concurrency=2)
    assert digest.hexdigest() == expected
started = time.monotonic()
with ThreadPoolExecutor(parallel) as pool:
    list(pool.map(copy, files.items()))
open(os.environ["STAGING_TERMINATION_LOG"], "w").write(json.dumps({"seconds": time.monotonic() - started}))
"""
"""The plain copy: each file by one request, hashed on the way, into the same store by the same library."""

UPLOAD = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import obstore
from obstore.store import S3Store
directory, target, parallel = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = S3Store("bucket", prefix=target.removeprefix("s3://bucket/"), endpoint=os.environ["AWS_ENDPOINT_URL"],
    region="us-east-1", client_options={"allow_http": True, "timeout": "300s"})
paths = [path for path in directory.rglob("*") if path.is_file() and ".cache" not in path.parts]
with ThreadPoolExecutor(parallel) as pool:
    list(pool.map(lambda path: obstore.put(store, str(path.relative_to(directory)), path), paths))
"""


def measure() -> Iterator[dict[str, Any]]:
    """One row a figure."""
    with tempfile.TemporaryDirectory(prefix="staging-", dir=_fast_directory()) as directory:
        yield from _throughput(Path(directory))
    for mib in GROWTH_MIB:
        with tempfile.TemporaryDirectory(prefix="staging-", dir=_fast_directory()) as directory:
            yield _one_file(Path(directory), mib)
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="staging-", dir=_fast_directory()) as directory:
            yield _many_files(Path(directory), count)


def _throughput(directory: Path) -> Iterator[dict[str, Any]]:
    """Staging, the plain copy, and download plus upload, in turns."""
    files = _write_model(directory / "hub" / REPO, count=FILES, size=FILE_MIB * MIB)
    total = FILES * FILE_MIB * MIB
    with _servers(directory) as (environment, revision, hub):
        blobs = f"{hub}/{REPO}/resolve/{revision}"
        took: dict[str, list[_Used]] = {}
        for turn in range(ROUNDS):
            contestants: dict[str, Callable[[], _Used]] = {
                "stage s3": lambda: _stage("s3://bucket/stage", revision, environment),
                "plain s3": lambda: _plain(blobs, "s3://bucket/plain", files, environment),
                "by disk s3": lambda: _by_disk(directory, "s3://bucket/disk", revision, environment),
                "stage file": lambda: _stage(f"file://{directory}/out/stage", revision, environment),
                "plain file": lambda: _plain(blobs, f"file://{directory}/out/plain", files, environment),
            }
            for name in random.Random(turn).sample(sorted(contestants), len(contestants)):
                took.setdefault(name, []).append(contestants[name]())
                shutil.rmtree(directory / "out", ignore_errors=True)
                _empty(directory / "s3" / "bucket")
    for store in ("s3", "file"):
        ours, plain = took[f"stage {store}"], took[f"plain {store}"]
        yield {
            "figure": f"staging to {store}, MB/s",
            "value": round(statistics.median(total / 1e6 / used.work_seconds for used in ours), 1),
            "plain": round(statistics.median(total / 1e6 / used.work_seconds for used in plain), 1),
        }
        yield {
            "figure": f"staging to {store} ÷ plain copy with hashing, throughput",
            "value": _ratio([used.work_seconds for used in plain], [used.work_seconds for used in ours]),
            "goal": 0.9,
        }
        yield {
            "figure": f"staging to {store} ÷ plain copy with hashing, processor time with start-up",
            "value": _ratio([used.cpu_seconds for used in ours], [used.cpu_seconds for used in plain]),
        }
    ours = took["stage s3"]
    yield {
        "figure": "staging ÷ hf download to disk and upload, throughput",
        "value": _ratio([used.seconds for used in took["by disk s3"]], [used.seconds for used in ours]),
        "plain": _ratio([used.seconds for used in took["by disk s3"]], [used.seconds for used in took["plain s3"]]),
        "goal": 2.0,
    }
    yield {"figure": "start-up, s", "value": round(min(used.seconds - used.work_seconds for used in ours), 2)}
    yield {
        "figure": "peak memory of staging, MiB",
        "value": round(max(used.peak_bytes for used in ours) / MIB),
        "goal": 1024,
    }
    yield {"figure": "bytes that staging wrote to disk", "value": max(used.written_bytes for used in ours), "goal": 0}


def _one_file(directory: Path, mib: int) -> dict[str, Any]:
    """Growth with the size of one file."""
    _write_model(directory / "hub" / REPO, count=1, size=mib * MIB, sparse=True)
    with _servers(directory) as (environment, revision, _):
        used = _stage("s3://bucket/one", revision, environment)
    return {
        "figure": f"one file of {mib} MiB",
        "seconds": round(used.work_seconds, 2),
        "mb_per_second": round(mib * MIB / 1e6 / used.work_seconds, 1),
        "peak_mib": round(used.peak_bytes / MIB),
    }


def _many_files(directory: Path, count: int) -> dict[str, Any]:
    """Growth with the number of files, and what a second run costs."""
    _write_model(directory / "hub" / REPO, count=count, size=10_000)
    with _servers(directory) as (environment, revision, _):
        used = _stage("s3://bucket/many", revision, environment)
        again = _stage("s3://bucket/many", revision, environment)
    return {
        "figure": f"{count} files of 10 kB",
        "seconds": round(used.work_seconds, 2),
        "second_run_seconds": round(again.work_seconds, 2),
        "peak_mib": round(used.peak_bytes / MIB),
    }


@dataclass(frozen=True, kw_only=True)
class _Used:
    """What a process took. seconds: in all; work_seconds: after its libraries were loaded, as it says itself.
    written_bytes: to file systems that are not in memory, and what it left in its TMPDIR."""

    seconds: float
    peak_bytes: int
    written_bytes: int
    cpu_seconds: float
    work_seconds: float


def _run(command: list[str], environment: dict[str, str]) -> _Used:
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=_fast_directory()) as told_in:
        message = Path(told_in) / "message"
        message.touch()
        environment = {**environment, "TMPDIR": scratch, "HOME": scratch, "STAGING_TERMINATION_LOG": str(message)}
        started = time.monotonic()
        with open(os.devnull, "w") as nowhere:
            process = subprocess.Popen(command, env=environment, stdout=nowhere, stderr=subprocess.PIPE)
            assert process.stderr is not None
            said = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{command[:4]} ended with {process.returncode}: {said[-2000:]}")
        left = sum(path.stat().st_size for path in Path(scratch).rglob("*") if path.is_file())
        told = json.loads(message.read_text() or "{}")
    return _Used(
        seconds=time.monotonic() - started,
        peak_bytes=usage.ru_maxrss * 1024,
        written_bytes=usage.ru_oublock * 512 + left,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        work_seconds=told.get("seconds", 0.0),
    )


def _stage(store: str, revision: str, environment: dict[str, str]) -> _Used:
    command = [sys.executable, "-P", "-m", "staging", "stage", "--source", f"{REPO}@{revision}", "--store", store]
    return _run([*command, "--parallel-files", str(PARALLEL)], environment)


def _plain(base: str, target: str, files: dict[str, str], environment: dict[str, str]) -> _Used:
    return _run([sys.executable, "-c", PLAIN, base, target, json.dumps(files), str(PARALLEL)], environment)


def _by_disk(directory: Path, target: str, revision: str, environment: dict[str, str]) -> _Used:
    """On a real disk: that is what the way over a disk has."""
    with tempfile.TemporaryDirectory(prefix="staging-disk-") as disk:
        hf = [str(Path(sys.executable).parent / "hf"), "download", REPO, "--revision", revision, "--local-dir", disk]
        down = _run([*hf, "--max-workers", str(PARALLEL)], environment)
        up = _run([sys.executable, "-c", UPLOAD, disk, target, str(PARALLEL)], environment)
    return _Used(
        seconds=down.seconds + up.seconds,
        peak_bytes=max(down.peak_bytes, up.peak_bytes),
        written_bytes=down.written_bytes + up.written_bytes,
        cpu_seconds=down.cpu_seconds + up.cpu_seconds,
        work_seconds=0.0,
    )


def _write_model(directory: Path, *, count: int, size: int, sparse: bool = False) -> dict[str, str]:
    """Files and their SHA-256; sparse ones are all zeros and take no room."""
    directory.mkdir(parents=True)
    chance, found = random.Random(1), {}
    for index in range(count):
        path = directory / f"model-{index:05}.safetensors"
        with path.open("wb") as handle:
            if sparse:
                handle.truncate(size)
            else:
                # By MiB: a child's peak memory as the kernel gives it is at least that of the process that it was forked from.
                for left in range(size, 0, -MIB):
                    handle.write(chance.randbytes(min(MIB, left)))
        with path.open("rb") as handle:
            found[path.name] = hashlib.file_digest(handle, "sha256").hexdigest()
    return found


@contextmanager
def _servers(directory: Path) -> Iterator[tuple[dict[str, str], str, str]]:
    """The hub and the store; yields the environment for clients, the model's revision, and the hub's address."""
    from tests.support.staging import environment, versitygw

    with (
        versitygw(directory / "s3") as store,
        subprocess.Popen(
            [sys.executable, str(HUB), "--port", "0", "--directory", str(directory / "hub")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as hub,
    ):
        try:
            assert hub.stdout is not None
            revision = hub.stdout.readline().split()[1]
            address = hub.stdout.readline().removeprefix("serving on ").strip()
            yield environment(hub=address, store=store), revision, address
        finally:
            hub.terminate()


def _fast_directory() -> str | None:
    """Memory, if it can carry a store (versitygw keeps its metadata in extended attributes)."""
    probe = Path("/dev/shm")
    try:
        with tempfile.NamedTemporaryFile(dir=probe) as handle:
            os.setxattr(handle.name, "user.probe", b"1")
    except OSError:
        return None
    return str(probe)


def _empty(bucket: Path) -> None:
    for found in bucket.iterdir():
        shutil.rmtree(found)


def _ratio(others: list[float], ours: list[float]) -> float:
    return round(statistics.median(other / our for other, our in zip(others, ours, strict=True)), 2)
