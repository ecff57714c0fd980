"""How each image is made on this machine: from built binaries, from PyPI wheels, from this Python."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import certifi

from sandbox.images.oci import Image, Layer, tree
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
    # The library for linking against, which is as large as all the rest.
    Path(sysconfig.get_config_var("LIBPL")).name,
    # Brings the whole of X11 along.
    f"_tkinter{sysconfig.get_config_var('EXT_SUFFIX')}",
)
"""Parts of Python's library that no program in an image uses. Site packages are chosen one by one."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One image. inputs: what decides its content, cheap to know: when it is the same, the image is."""

    inputs: tuple[object, ...]
    make: Callable[[], Image]


def recipes() -> dict[str, Recipe]:
    """Name of the image → how it is made."""
    return {
        "pause": _binary("pause", at="/pause"),
        "coredns": _binary("coredns", at="/coredns"),
        "llm-d-inference-sim": _binary("llm-d-inference-sim", at="/app/llm-d-inference-sim"),
        "epp": _binary("epp", at="/epp"),
        "lws": _binary("lws-manager", at="/manager"),
        "versitygw": _binary("versitygw", at="/usr/local/bin/versitygw"),
        "envoy": Recipe(inputs=(_read(HERE / "envoy.txt"), platform.libc_ver()), make=_envoy),
        "vllm-router": _with_python(
            HERE / "vllm-router.txt", entrypoint=("/usr/local/bin/python3", "-m", "vllm_router.launch_router")
        ),
        "python": _with_python(STAGING_LOCK, entrypoint=("/usr/local/bin/python3",)),
    }


def _binary(name: str, *, at: str) -> Recipe:
    """A static binary and nothing else."""
    program = tool(name)
    layer = Layer(files={at: program}, texts={"/etc/passwd": _USERS}, directories=("/tmp",))
    return Recipe(inputs=(str(program),), make=lambda: Image(layers=(layer,), entrypoint=(at,)))


def _envoy() -> Image:
    """Envoy out of its wheel, with the C library that it wants."""
    program = site_packages(HERE / "envoy.txt") / "envoy" / "_bin" / "envoy"
    layer = Layer(
        files={"/usr/local/bin/envoy": program, **libraries([program])},
        texts={"/etc/passwd": _USERS},
        directories=("/tmp",),
    )
    return Image(layers=(layer,), entrypoint=("/usr/local/bin/envoy",))


def _with_python(lock: Path, *, entrypoint: tuple[str, ...]) -> Recipe:
    """This Python, and on it the packages of a hash-locked requirements file."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"

    def make() -> Image:
        base = _python_layer(version)
        site = site_packages(lock)
        files = dict(tree(site, at=f"/usr/local/lib/{version}/site-packages", leave_out=("__pycache__", "tests")))
        shared = [file for file in files.values() if ".so" in file.suffixes]
        wanted = {at: file for at, file in libraries(shared).items() if not file.is_relative_to(site)}
        more = Layer(files=files | {at: file for at, file in wanted.items() if at not in base.files})
        return Image(
            layers=(base, more),
            entrypoint=entrypoint,
            environment={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": "/tmp",
                "PYTHONUNBUFFERED": "1",
                "LANG": "C.UTF-8",
            },
        )

    authorities = hashlib.sha256(Path(certifi.where()).read_bytes()).hexdigest()
    return Recipe(
        inputs=(_read(lock), sys.version, sys.base_prefix, platform.libc_ver(), authorities, entrypoint), make=make
    )


def _python_layer(version: str) -> Layer:
    interpreter = (Path(sys.base_prefix) / "bin" / version).resolve()
    files = {f"/usr/local/bin/{version}": interpreter}
    files |= dict(tree(Path(sysconfig.get_path("stdlib")), at=f"/usr/local/lib/{version}", leave_out=_LEFT_OUT))
    # The published image has Debian's certificates; these are the same authorities, from certifi.
    files["/etc/ssl/certs/ca-certificates.crt"] = Path(certifi.where())
    return Layer(
        files=files | libraries([interpreter, *(file for file in files.values() if ".so" in file.suffixes)]),
        links={"/usr/local/bin/python3": version, "/usr/local/bin/python": version},
        texts={"/etc/passwd": _USERS},
        directories=("/tmp",),
    )


def libraries(programs: Iterable[Path]) -> dict[str, Path]:
    """The shared libraries that programs want, at the places where the loader looks for them."""
    found: dict[str, Path] = {}
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if match := re.search(r"(?:=> )?(/\S+) \(0x", line):
            found[match.group(1)] = Path(match.group(1)).resolve()
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


def _read(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
