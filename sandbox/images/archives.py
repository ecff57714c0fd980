"""Keeps the image archives in the cache, one for each image of the embedded cluster."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog import artifacts
from sandbox.images.oci import write_archive
from sandbox.images.recipes import Recipe, recipes
from sandbox.toolchain import cache_directory

MIRROR = "mirror.sandbox.local"
"""Registry name below which every image lies. It resolves nowhere: what is not loaded can't be pulled by accident."""

PAUSE = artifacts.image("pause", mirror=MIRROR)
COREDNS = artifacts.image("coredns", mirror=MIRROR)


def archives() -> dict[str, Path]:
    """Name → archive of every image, made where it is missing. An archive's file name tells its content."""
    wanted = {name: (recipe, _place(name, recipe)) for name, recipe in recipes().items()}
    if not all(place.exists() for _, place in wanted.values()):
        with _exclusive():
            for name, (recipe, place) in wanted.items():
                if not place.exists():  # another process may have made it while this one waited
                    write_archive(recipe.make(), place, references=_references(name))
                    _remove_older(name, place)
    return {name: place for name, (_, place) in wanted.items()}


def _references(name: str) -> list[str]:
    return [artifacts.image(name, mirror=MIRROR)]


def _place(name: str, recipe: Recipe) -> Path:
    code = b"".join((Path(__file__).parent / file).read_bytes() for file in ("oci.py", "recipes.py"))
    inputs = repr((_references(name), recipe.inputs)).encode()
    return cache_directory() / "images" / f"{name}@{hashlib.sha256(inputs + code).hexdigest()[:16]}.tar"


def _remove_older(name: str, place: Path) -> None:
    for other in place.parent.glob(f"{name}@*.tar"):
        if other != place:
            other.unlink(missing_ok=True)


@contextmanager
def _exclusive() -> Iterator[None]:
    directory = cache_directory() / "images"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
