"""Runs the real Pulumi engine on a stack of this project and tells what it did."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sandbox.toolchain import built_engine

PROJECT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Step:
    """One operation of the engine on one resource."""

    operation: str
    type: str
    name: str


@dataclass(frozen=True)
class Outcome:
    """What one pulumi command did: exit code, all that it printed, the steps it took or planned, seconds."""

    code: int
    text: str
    steps: tuple[Step, ...]
    seconds: float

    @property
    def changes(self) -> dict[str, int]:
        """Steps by operation, without those that left a resource as it was."""
        return dict(Counter(step.operation for step in self.steps if step.operation not in {"same", "read", "refresh"}))

    def succeeded(self) -> Outcome:
        """Itself; fails with the whole output when the command failed."""
        assert self.code == 0, self.text
        return self


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack whose state, config and plugins' home are its own."""

    name: str
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    project: Path = PROJECT

    @property
    def config_file(self) -> Path:
        return self.directory / f"Pulumi.{self.name}.yaml"

    def configure(self, config: Mapping[str, Any]) -> None:
        """Writes the stack's config; keys without a namespace get the project's."""
        keys = {key if ":" in key else f"llm-serving:{key}": value for key, value in config.items()}
        self.config_file.write_text(yaml.safe_dump({"config": keys}, sort_keys=True))

    def up(self, *arguments: str) -> Outcome:
        return self.run("up", "--yes", "--skip-preview", *arguments)

    def preview(self, *arguments: str) -> Outcome:
        return self.run("preview", *arguments)

    def refresh(self, *arguments: str) -> Outcome:
        return self.run("refresh", "--yes", "--skip-preview", *arguments)

    def destroy(self, *arguments: str) -> Outcome:
        return self.run("destroy", "--yes", "--skip-preview", *arguments)

    def run(self, command: str, *arguments: str, timeout: float = 900) -> Outcome:
        """Runs an update-like command to its end."""
        self._initialise()
        events = self.directory / f"events-{time.monotonic_ns()}.jsonl"
        started = time.monotonic()
        done = subprocess.run(
            [*self._command(command), "--event-log", str(events), *arguments],
            cwd=self.project,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Outcome(code=done.returncode, text=done.stdout, steps=_steps(events), seconds=time.monotonic() - started)

    def start(self, command: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        """Starts an update-like command and does not wait for it; its output goes to `log`."""
        self._initialise()
        with log.open("wb") as out:
            return subprocess.Popen(
                [*self._command(command), *arguments],
                cwd=self.project,
                env=self._environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def unlock(self) -> None:
        """Drops the lock that a killed pulumi left."""
        self._ask("cancel", "--yes")

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self._ask("stack", "output", "--json")))

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        return list(json.loads(self._ask("stack", "export"))["deployment"].get("resources", []))

    def _command(self, command: str) -> list[str]:
        config = ["--config-file", str(self.config_file)] if self.config_file.exists() else []
        return [str(built_engine().pulumi), command, "--stack", self.name, "--non-interactive", *config]

    def _ask(self, *arguments: str) -> str:
        command = [str(built_engine().pulumi), *arguments, "--stack", self.name, "--non-interactive"]
        done = subprocess.run(
            command, cwd=self.project, env=self._environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _initialise(self) -> None:
        backend = self.directory / "backend"
        if backend.exists():
            return
        backend.mkdir(parents=True)
        # `stack init` writes into the config of the project where it runs, and takes no other file's name.
        elsewhere = self.directory / "project"
        elsewhere.mkdir()
        shutil.copy(self.project / "Pulumi.yaml", elsewhere)
        command = [str(built_engine().pulumi), "stack", "init", self.name, "--non-interactive"]
        done = subprocess.run(
            command, cwd=elsewhere, env=self._environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def _environment(self) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
            **built_engine().environment,
            "PULUMI_BACKEND_URL": f"file://{self.directory / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            # Without it the CLI does not know --event-log.
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_ERROR_OUTPUT_STRING": "true",
            **self.environment,
        }


def _steps(events: Path) -> tuple[Step, ...]:
    if not events.exists():
        return ()
    steps = []
    for line in events.read_text().splitlines():
        metadata = json.loads(line).get("resourcePreEvent", {}).get("metadata")
        if metadata:
            urn = metadata["urn"]
            steps.append(Step(operation=metadata["op"], type=metadata["type"], name=urn.rpartition("::")[2]))
    return tuple(steps)
