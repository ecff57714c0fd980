"""Where an embedded cluster keeps its things, and which addresses it has."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from sandbox.cluster.state import DESCRIPTION

NODE = "real-1"
"""Name of the one node that runs real pods."""

POD_NETWORK = "10.244.0.0/24"
"""Addresses of pods. They are seen inside the cluster's own network namespace only."""

NETWORKS = ("10.199.0.0/16", "10.201.0.0/16")
"""What clusters take their addresses from: links to the host, and Services."""

API_PORT = 6443


class Profile(StrEnum):
    """How much of a cluster is started."""

    NODE = "node"
    """Everything: control plane, one real node, KWOK."""
    CONTROL_PLANE = "control-plane"
    """etcd, API server, controller manager, scheduler and KWOK: objects are accepted and pods are placed, none runs."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One cluster: its state directory, what is started, and its number on this machine (0 to 255), from which addresses follow."""

    state: Path
    profile: Profile
    number: int
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Of the objects that it holds: another one once they are gone, also in the same directory."""

    @property
    def link(self) -> str:
        """The host's end of the only link to the cluster. Named by the identity, so that it is never taken for another cluster's."""
        return f"llmsb-{self.identity[:8]}"

    @property
    def host_address(self) -> str:
        return f"10.199.{self.number}.1"

    @property
    def node_address(self) -> str:
        return f"10.199.{self.number}.2"

    @property
    def service_network(self) -> str:
        return f"10.201.{self.number}.0/24"

    @property
    def api_service_address(self) -> str:
        return f"10.201.{self.number}.1"

    @property
    def dns_address(self) -> str:
        return f"10.201.{self.number}.10"

    @property
    def server(self) -> str:
        return f"https://{self.node_address}:{API_PORT}"

    @property
    def cgroup(self) -> str:
        return f"llm-serving-sandbox-{self.identity[:8]}"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for use on the host."""
        return self.state / "kubeconfig"

    @property
    def status_file(self) -> Path:
        """What the supervisor last said of its components."""
        return self.state / "status.json"

    def save(self) -> None:
        """Writes the description by one rename."""
        fresh = self.state / f".{DESCRIPTION}"
        fresh.write_text(json.dumps(asdict(self) | {"state": str(self.state)}, indent=1))
        fresh.replace(self.state / DESCRIPTION)

    @classmethod
    def load(cls, state: Path) -> Layout | None:
        """The layout in `state`, or None when there is none that can be read (a half-written one is none)."""
        try:
            saved = json.loads((state / DESCRIPTION).read_text())
            profile, number, identity = Profile(saved["profile"]), int(saved["number"]), str(saved["identity"])
            return cls(state=state, profile=profile, number=number, identity=identity)
        except (OSError, ValueError, KeyError, TypeError):
            return None
