"""The engines' published wheels, kept unopened: tests read their flags out of them. They are never installed."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain.build import cache_directory


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel on PyPI. megabytes: of the download."""

    name: str
    version: str
    sha256: str
    megabytes: int


WHEELS = (
    Wheel(
        name="sglang",
        version="0.5.23",
        sha256="00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937",
        megabytes=39,
    ),
    Wheel(
        name="vllm",
        version="0.33.0",
        sha256="4b6bdec4ab269990bf70d45a3c1e94c3760a27064513760193b26d6f0da883aa",
        megabytes=336,
    ),
)


def wheel(name: str) -> Path | None:
    """Where the wheel is, or None when it was not fetched."""
    (row,) = [row for row in WHEELS if row.name == name]
    found = list(_directory().glob(f"{row.name}-{row.version}-*.whl"))
    return found[0] if found else None


def fetch(name: str) -> Path:
    """Fetches the wheel with pip, which compares its hash; nothing is done when it is there."""
    (row,) = [row for row in WHEELS if row.name == name]
    if there := wheel(name):
        return there
    print(f"{row.name} {row.version}: fetching its wheel ({row.megabytes} MB)", file=sys.stderr)
    _directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_directory()) as part:
        pinned = Path(part) / "requirements.txt"
        pinned.write_text(f"{row.name}=={row.version} --hash=sha256:{row.sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        only = ["--only-binary", ":all:", "--platform", "manylinux_2_34_x86_64", "--platform", "manylinux_2_28_x86_64"]
        python = ["--python-version", "3.11", "--require-hashes", "--requirement", str(pinned), "--dest", part]
        subprocess.run([*command, *only, *python], check=True)
        (fetched,) = Path(part).glob("*.whl")
        return fetched.rename(_directory() / fetched.name)


def _directory() -> Path:
    return cache_directory() / "wheels"


def main() -> int:
    known = [row.name for row in WHEELS]
    parser = argparse.ArgumentParser(prog="python -m sandbox.engine_wheels", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(known)}; all when none is given")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no such wheel: {', '.join(unknown)}. There are: {', '.join(known)}")
    for name in names or known:
        print(fetch(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
