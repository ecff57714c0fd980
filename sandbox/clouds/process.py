"""A simulated cloud as a process beside a test or a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sandbox.clouds.clock import Clock
from sandbox.clouds.files import write

COMMANDS = "bin"
"""Directory in the state directory for commands that clients of the cloud run."""

PROJECT = Path(__file__).parent.parent.parent


class CloudProcessError(Exception):
    """The cloud did not start; the message is its own."""


@dataclass(frozen=True)
class RunningCloud:
    """address: `aws:PORT`. state: its directory."""

    address: str
    state: Path
    process: subprocess.Popen[str]

    @property
    def environment(self) -> dict[str, str]:
        """What the engine needs in its environment to use this cloud and the clusters in it."""
        return {"PULUMI_DEBUG_PROVIDERS": self.address, "PATH": f"{self.state / COMMANDS}:{os.environ['PATH']}"}

    def set_clock(self, now: datetime) -> None:
        """Stops the cloud's clock at this time."""
        Clock(self.state).set(now)

    def sell(self, *blocks: Mapping[str, Any]) -> None:
        """Adds capacity blocks, or changes those of the same id; none is ever taken back (sandbox.clouds.aws.services.capacity has their form)."""
        write(self.state / "capacity-blocks.json", json.dumps(list(blocks)))

    def inject(self, *faults: Mapping[str, Any]) -> None:
        """Replaces the faults (sandbox.clouds.faults has their form)."""
        write(self.state / "faults.json", json.dumps(list(faults)))

    def kill(self) -> None:
        """Ends the process without a chance to tidy up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(
    cloud: str, *, state: Path, kubeconfig: Path | None = None, clock: datetime | None = None
) -> Iterator[RunningCloud]:
    """Runs a cloud as long as the block; a later one with the same directory goes on with the same state.

    Raises CloudProcessError.
    """
    state.mkdir(parents=True, exist_ok=True)
    arguments = ["--state", str(state), "--faults", str(state / "faults.json")]
    arguments += ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    arguments += ["--clock", clock.isoformat()] if clock else []
    process = _start(cloud, arguments)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address.startswith(f"{cloud}:"):
            raise CloudProcessError(f"the simulated {cloud} did not start: {process.communicate()[1].strip()}")
        yield RunningCloud(address, state, process)
    finally:
        process.terminate()
        process.wait()


def _start(cloud: str, arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox.clouds", cloud, *arguments],
        cwd=PROJECT,
        env={**os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
