"""Runs the Pulumi CLI on this checkout's dev stack, with a state of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.cluster import NETWORKS
from sandbox.toolchain import Engine


class PulumiError(Exception):
    """A pulumi command failed; pulumi itself has said why."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack of this project on a file backend below `state`, unless the user's environment names a backend."""

    engine: Engine
    name: str
    project: Path
    state: Path

    def environment(self) -> dict[str, str]:
        """The environment of every pulumi command."""
        self.state.mkdir(parents=True, exist_ok=True)
        defaults = {
            "PULUMI_BACKEND_URL": f"file://{self.state}",
            # The dev stack holds no secret: the passphrase keeps pulumi from asking for one.
            "PULUMI_CONFIG_PASSPHRASE": "",
        }
        # The machine's proxy, where it has one, does not know the cluster.
        direct = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), *NETWORKS]))
        return {**defaults, **os.environ, **self.engine.environment, "NO_PROXY": direct}

    def run(self, *arguments: str, check: bool = True) -> int:
        """Runs a command with the user's terminal; raises PulumiError when it fails."""
        command = [str(self.engine.pulumi), *arguments, "--non-interactive"]
        code = subprocess.run(command, cwd=self.project, env=self.environment(), check=False).returncode
        if check and code:
            raise PulumiError(f"`pulumi {arguments[0]}` ended with exit code {code}; its own message is above.")
        return code

    def ask(self, *arguments: str) -> str | None:
        """The standard output of a command, or None when it fails."""
        command = [str(self.engine.pulumi), *arguments, "--non-interactive"]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment(), capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else None

    def exists(self) -> bool:
        """Whether the stack has a state."""
        return self.name in self._names()

    def any(self) -> bool:
        """Whether the backend has any stack of this project."""
        return bool(self._names())

    def _names(self) -> set[str]:
        return {each["name"].split("/")[-1] for each in json.loads(self.ask("stack", "ls", "--json") or "[]")}

    def select(self) -> None:
        """Makes the stack the current one, creating it where it does not exist."""
        self.run("stack", "select", "--create", self.name)

    def start_over_on_another(self, cluster: str) -> bool:
        """Forgets what the stack had on a cluster that is gone; whether there was something to forget. `cluster`: its identity."""
        record = self.state / f"{self.name}.cluster"
        former = record.read_text() if record.exists() else cluster
        gone = former != cluster and self.exists()
        if gone:
            self.run("stack", "rm", "--yes", "--force", "--preserve-config", self.name)
        self.state.mkdir(parents=True, exist_ok=True)
        record.write_text(cluster)
        return gone

    def unlock(self) -> None:
        """Drops the lock that a killed pulumi left. Only call it while no other pulumi can be running on this stack."""
        self.ask("cancel", "--yes", "--stack", self.name)

    def recover(self) -> None:
        """Puts right what a killed pulumi left: its lock, and its notes on objects that it was making.

        Those objects are either not there, and made anew, or there, and taken over (`adopt`).
        """
        self.unlock()
        if self.deployment().get("pending_operations"):
            self.run("refresh", "--yes", "--skip-preview", "--clear-pending-creates", "--stack", self.name)

    def deployment(self) -> dict[str, Any]:
        """What the stack's state records: resources, and operations that were begun and not ended."""
        return dict(json.loads(self.ask("stack", "export", "--stack", self.name) or "{}").get("deployment") or {})

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        return dict(json.loads(self.ask("stack", "output", "--json", "--stack", self.name) or "{}"))
