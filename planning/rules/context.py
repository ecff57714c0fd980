"""What the rules look at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from catalog.hardware import Accelerator
from catalog.models import Model
from planning.flags import Flags
from planning.memory import Memory
from planning.router import RouterPlan
from planning.settings.base import Stack
from planning.workload import EngineWorkload


@dataclass(frozen=True, kw_only=True)
class EngineView:
    """One role's engine as the rules see it. quantised: its memory is planned with MXFP8 projections."""

    workload: EngineWorkload
    flags: Flags
    model: Model
    accelerator: Accelerator
    quantised: bool = False

    @property
    def role(self) -> str:
        """unified, prefill or decode."""
        return self.workload.role

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of the container."""
        return self.workload.env

    def json(self, flag: str) -> object:
        """A flag whose value is JSON, parsed; None when it is missing or isn't JSON (another rule reports that)."""
        try:
            return json.loads(self.flags.text(flag) or "null")
        except ValueError:
            return None

    @cached_property
    def connectors(self) -> tuple[Mapping[str, object], ...]:
        """The KV connectors: the one that is configured, or the children of a MultiConnector."""
        config = self.json("kv-transfer-config")
        if not isinstance(config, dict):
            return ()
        extra = config.get("kv_connector_extra_config")
        children = extra.get("connectors") if isinstance(extra, dict) else None
        listed = children if isinstance(children, list) else [config]
        return tuple(child for child in listed if isinstance(child, dict))

    def connector(self, name: str) -> Mapping[str, object] | None:
        """The connector of that name, or None."""
        return next((child for child in self.connectors if child.get("kv_connector") == name), None)


@dataclass(frozen=True, kw_only=True)
class Context:
    """A whole environment as the rules see it."""

    settings: Stack
    engines: tuple[EngineView, ...]
    router: RouterPlan
    memory: Memory

    def engine(self, role: str) -> EngineView | None:
        """The engine of a role, or None."""
        return next((view for view in self.engines if view.role == role), None)
