"""Builds the catalogue's tools from Go modules and keeps the results by the hash of what goes into them.

A finished binary lies under <cache>/tools/<name>-<hash>/; it is put there by one rename, so that a build that was
interrupted at any point leaves either nothing or the whole. The go command keeps what it has compiled: a build that
was interrupted goes on where it stopped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sandbox.toolchain.catalog import TOOLS, Tool

MODULES = Path(__file__).parent.parent / "tools"
GO_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")
BYTES_TO_BUILD_ALL = 20 * 1024**3
"""Room that building everything from empty caches takes: module cache 6 GB, build cache 13 GB, measured 2026-12-01."""


class ToolchainError(Exception):
    """A tool can't be built or used here; the message says what, why and what to do."""


def cache_directory() -> Path:
    """$LLM_SERVING_CACHE, else llm-serving/ below the user's cache directory."""
    if own := os.environ.get("LLM_SERVING_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llm-serving"


def tool(name: str) -> Path:
    """The path of a tool's binary; builds it when it is missing.

    Raises ToolchainError when it can't be built.
    """
    wanted = TOOLS[name]
    binary = _directory(wanted) / name
    if not binary.exists():
        build([name])
    return binary


def module_directory(path: str, *, module: str) -> Path:
    """The directory of the Go module `path`, at the version that sandbox/tools/<module>/go.mod pins."""
    _go(module, "mod", "download", path)
    return Path(_go(module, "list", "-m", "-f", "{{.Dir}}", path).strip())


def missing(names: Iterable[str] | None = None) -> list[str]:
    """Names of the tools that are not built yet, in build order."""
    wanted = set(TOOLS if names is None else names)
    return [name for name, each in TOOLS.items() if name in wanted and not (_directory(each) / name).exists()]


def build(names: Iterable[str] | None = None) -> None:
    """Builds what is missing, in the catalogue's order, with one line of progress each on standard error."""
    todo = missing(names)
    if not todo:
        return
    _check_machine(todo)
    with _exclusive():
        todo = missing(todo)  # another process may have built them while this one waited
        left = sum(TOOLS[name].cpu_seconds for name in todo)
        cores = os.cpu_count() or 1
        _say(
            f"building {len(todo)} tools from Go modules: about {_minutes(left / cores)} from empty caches, less where parts are cached"
        )
        for number, name in enumerate(todo, 1):
            started = time.monotonic()
            _build_one(TOOLS[name])
            left -= TOOLS[name].cpu_seconds
            took = time.monotonic() - started
            _say(f"[{number}/{len(todo)}] {name}: {took:.0f} s; at most {_minutes(left / cores)} to go")


def _build_one(wanted: Tool) -> None:
    target = _directory(wanted)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{wanted.name}-") as scratch:
        result = Path(scratch, "result")
        result.mkdir()
        # A copy, because embedded files are laid beside the sources and a checkout is not written to.
        sources = Path(scratch, "sources")
        shutil.copytree(MODULES / wanted.module, sources)
        for name, where in wanted.embeds.items():
            shutil.copyfile(_module_file(wanted.module, where), sources / name)
        link = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in wanted.stamps.items())])
        _run(
            ["go", "build", *GO_FLAGS, "-ldflags", link, "-o", str(result / wanted.name), wanted.package],
            cwd=sources,
            doing=f"building {wanted.name}",
        )
        for name, where in wanted.beside.items():
            shutil.copyfile(_module_file(wanted.module, where), result / name)
            (result / name).chmod(0o755)
        result.rename(target)


def _module_file(module: str, where: str) -> Path:
    path, _, file = where.partition(":")
    return module_directory(path, module=module) / file


def _directory(wanted: Tool) -> Path:
    return cache_directory() / "tools" / f"{wanted.name}-{_digest(wanted.name)}"


@cache
def _digest(name: str) -> str:
    wanted = TOOLS[name]
    digest = hashlib.sha256()
    sources = MODULES / wanted.module
    for file in sorted(p for p in sources.rglob("*") if p.suffix in {".go", ".mod", ".sum"}):
        digest.update(f"{file.relative_to(sources)}\0".encode())
        digest.update(file.read_bytes())
    digest.update(repr((wanted, GO_FLAGS)).encode())
    return digest.hexdigest()[:16]


def _go(module: str, *arguments: str) -> str:
    return _run(["go", *arguments], cwd=MODULES / module, doing=f"go {arguments[0]} in sandbox/tools/{module}")


def _run(command: list[str], *, cwd: Path, doing: str) -> str:
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
    if "no space left on device" in tail:
        raise ToolchainError(
            f"{doing}: the disk is full. Free up to {BYTES_TO_BUILD_ALL >> 30} GiB (go's caches lie at `go env GOCACHE GOMODCACHE`, "
            f"the results at {cache_directory()}) and run the same command again: it goes on where it stopped."
        )
    raise ToolchainError(f"{doing} failed (exit {done.returncode}):\n{tail}")


def _check_machine(todo: list[str]) -> None:
    if shutil.which("go") is None:
        raise ToolchainError(
            "go is not on PATH, and the sandbox's tools are built from Go modules. Install Go 1.26 or newer, "
            "or use your own `pulumi` and cluster: KUBECONFIG=… make up."
        )
    place = cache_directory()
    place.mkdir(parents=True, exist_ok=True)
    free, wanted = shutil.disk_usage(place).free, _bytes_to_build(todo)
    if free < wanted:
        raise ToolchainError(
            f"{place} has {free / 1024**3:.1f} GiB free; building {len(todo)} tools takes up to {wanted / 1024**3:.1f} GiB. "
            "Free some room, or set LLM_SERVING_CACHE to a larger disk (and go's own caches by GOCACHE and GOMODCACHE)."
        )


def _bytes_to_build(names: list[str]) -> float:
    """A share of the room for everything that goes by compile time, with 1 GiB to spare."""
    share = sum(TOOLS[name].cpu_seconds for name in names) / sum(tool.cpu_seconds for tool in TOOLS.values())
    return share * BYTES_TO_BUILD_ALL + 1024**3


@contextmanager
def _exclusive() -> Iterator[None]:
    with (cache_directory() / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the tools; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _say(line: str) -> None:
    print(f"toolchain: {line}", file=sys.stderr, flush=True)
