"""The real Envoy, from the wheel that the sandbox's image is made of."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.images.recipes import site_packages

LOCK = Path(__file__).parents[2] / "sandbox" / "images" / "envoy.txt"


def envoy_binary() -> Path:
    """Path of Envoy, as the sandbox's image has it."""
    return site_packages(LOCK) / "envoy" / "_bin" / "envoy"


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_envoy(config: dict[str, Any], *, directory: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """Envoy with a configuration, until the block ends. ready: URL that answers 200 once it serves."""
    path = directory / "envoy.json"
    path.write_text(json.dumps(config))
    with (directory / "envoy.log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(envoy_binary()),
                "--config-path",
                str(path),
                "--disable-hot-restart",
                "--concurrency",
                "1",
                "--log-level",
                "warning",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _wait(ready, process=process, log=directory / "envoy.log")
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(url: str, *, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise AssertionError(f"Envoy is not ready: {log.read_text()}")
