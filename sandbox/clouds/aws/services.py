"""What moto lacks or does too little of: state machines of ours behind the same validated calls."""

from __future__ import annotations

from pathlib import Path

from sandbox.clouds.aws.api import Api, Handler


class Services:
    """All of them together. handlers: by service and operation."""

    def __init__(self, *, state: Path, kubeconfig: Path | None) -> None:
        self.handlers: dict[tuple[str, str], Handler] = {}

    def start(self, api: Api) -> None:
        """Brings the state back to life."""
        api.restore(lambda event: None)
