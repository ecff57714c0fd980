"""Runs the Pulumi CLI on this checkout's dev stack, with a state of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        return {**defaults, **os.environ, **self.engine.environment}

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
        listed = self.ask("stack", "ls", "--json")
        return any(each["name"].split("/")[-1] == self.name for each in json.loads(listed or "[]"))

    def select(self) -> None:
        """Makes the stack the current one, creating it where it does not exist."""
        self.run("stack", "select", "--create", self.name)

    def unlock(self) -> None:
        """Drops the lock that a killed pulumi left. Only call it while no other pulumi can be running on this stack."""
        self.ask("cancel", "--yes", "--stack", self.name)

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        return dict(json.loads(self.ask("stack", "output", "--json", "--stack", self.name) or "{}"))
