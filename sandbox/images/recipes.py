"""How each image is made on this machine: from built binaries, from PyPI wheels, from this Python."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

import certifi

from sandbox.images.oci import Image, tree
from sandbox.toolchain import ToolchainError, cache_directory, tool

HERE = Path(__file__).parent
STAGING_LOCK = HERE.parent.parent / "components" / "weights" / "staging" / "requirements.txt"

_USERS = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
_LEFT_OUT = (
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "site-packages",
    "pkgconfig",
)
"""Parts of Python's library that no program in an image uses. Site packages are chosen one by one."""


def recipes() -> dict[str, Callable[[], Image]]:
    """Name of the image → how it is made."""
    return {
        "pause": lambda: binary("pause", at="/pause"),
        "coredns": lambda: binary("coredns", at="/coredns"),
        "llm-d-inference-sim": lambda: binary("llm-d-inference-sim", at="/app/llm-d-inference-sim"),
        "epp": lambda: binary("epp", at="/epp"),
        "lws": lambda: binary("lws-manager", at="/manager"),
        "versitygw": lambda: binary("versitygw", at="/usr/local/bin/versitygw"),
        "envoy": envoy,
        "vllm-router": vllm_router,
        "python": python,
    }


def binary(name: str, *, at: str) -> Image:
    """A static binary and nothing else."""
    return Image(files={at: tool(name)}, entrypoint=(at,), texts={"/etc/passwd": _USERS})


def envoy() -> Image:
    """Envoy out of its wheel, with the C library that it wants."""
    site = site_packages(HERE / "envoy.txt")
    program = site / "envoy" / "_bin" / "envoy"
    return Image(
        files={"/usr/local/bin/envoy": program, **libraries([program])},
        entrypoint=("/usr/local/bin/envoy",),
        texts={"/etc/passwd": _USERS},
    )


def python() -> Image:
    """This Python, with what the staging program imports."""
    return _python(site_packages(STAGING_LOCK), entrypoint=("/usr/local/bin/python3",))


def vllm_router() -> Image:
    """This Python with the router's wheel."""
    return _python(
        site_packages(HERE / "vllm-router.txt"),
        entrypoint=("/usr/local/bin/python3", "-m", "vllm_router.launch_router"),
    )


def _python(site: Path, *, entrypoint: tuple[str, ...]) -> Image:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix)
    interpreter = (prefix / "bin" / version).resolve()
    files = {f"/usr/local/bin/{version}": interpreter}
    files |= dict(tree(Path(sysconfig.get_path("stdlib")), at=f"/usr/local/lib/{version}", leave_out=_LEFT_OUT))
    files |= dict(tree(site, at=f"/usr/local/lib/{version}/site-packages", leave_out=("__pycache__", "tests")))
    # The published image has Debian's certificates; these are the same authorities, from certifi.
    files["/etc/ssl/certs/ca-certificates.crt"] = Path(certifi.where())
    shared = [file for path, file in files.items() if path.endswith(".so") or ".so." in path]
    return Image(
        files=files | libraries([interpreter, *shared]),
        entrypoint=entrypoint,
        links={"/usr/local/bin/python3": version, "/usr/local/bin/python": version},
        texts={"/etc/passwd": _USERS},
        environment={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",
            "PYTHONUNBUFFERED": "1",
            "LANG": "C.UTF-8",
        },
    )


def libraries(programs: Iterable[Path]) -> dict[str, Path]:
    """The shared libraries that programs want, at the places where the loader looks for them."""
    found: dict[str, Path] = {}
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if match := re.search(r"(?:=> )?(/\S+) \(0x", line):
            path = Path(match.group(1))
            if "site-packages" not in path.parts:
                found[str(path)] = path.resolve()
    return found


def site_packages(lock: Path) -> Path:
    """The packages of a hash-locked requirements file, installed into the cache once."""
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    place = cache_directory() / "site" / f"{lock.parent.name}-{lock.stem}-{digest}"
    if place.exists():
        return place
    scratch = place.with_name(f".{place.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run(
        [*install, "--require-hashes", "--requirement", str(lock), "--target", str(scratch)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolchainError(f"installing {lock.name} failed:\n{done.stderr.strip()}")
    scratch.rename(place)
    return place
