"""A real HTTP proxy (proxy.py) in a process of its own, and what went through it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.staging import free_port, wait_for_port


@dataclass(frozen=True)
class ForwardProxy:
    """address: http://HOST:PORT. log: its access log."""

    address: str
    log: Path

    def requests(self, server: str) -> list[str]:
        """`METHOD /path` of a request on each connection that it passed on to `server` (http://HOST:PORT)."""
        where = re.escape(server.removeprefix("http://"))
        return [f"{method} {path}" for method, path in re.findall(rf" (\w+) {where}(\S+) - ", self.log.read_text())]


@contextmanager
def forward_proxy(directory: Path, *, credentials: str | None = None) -> Iterator[ForwardProxy]:
    """Runs the proxy as long as the block. credentials: USER:PASSWORD that it asks for."""
    port, log = free_port(), directory / "proxy.log"
    command = [sys.executable, "-m", "proxy", "--hostname=127.0.0.1", f"--port={port}", f"--log-file={log}"]
    command += [f"--basic-auth={credentials}"] if credentials else []
    process = subprocess.Popen(
        [*command, "--num-workers=1", "--num-acceptors=1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_port(port)
        yield ForwardProxy(f"http://127.0.0.1:{port}", log)
    finally:
        process.terminate()
        process.wait()
