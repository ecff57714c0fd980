"""What moto lacks or does too little of: state machines of ours behind the same validated calls.

A service's methods are the handlers of its operations: `create_addon` answers CreateAddon. What they hold is rebuilt from
the journal, so they keep nothing on disk and take every random value from moto's generator and every time from the call.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import botocore.session
from botocore import xform_name

from sandbox.clouds.aws.api import Api, Handler
from sandbox.clouds.aws.services.access import AccessEntries, PodIdentities
from sandbox.clouds.aws.services.addons import Addons
from sandbox.clouds.aws.services.capacity import Capacity
from sandbox.clouds.aws.services.control_planes import ControlPlanes
from sandbox.clouds.aws.services.extras import FileSystems, LoadBalancers, LogKeys, Prometheus, ScheduledActions
from sandbox.clouds.aws.services.node_groups import NodeGroups
from sandbox.clouds.aws.services.references import References
from sandbox.clouds.nodes import Nodes


class Services:
    """All of them together. handlers: by service and operation."""

    def __init__(self, *, state: Path, kubeconfig: Path | None) -> None:
        self.capacity = Capacity(file=state / "capacity-blocks.json")
        self.control_planes = ControlPlanes(kubeconfig=kubeconfig)
        entries, identities = AccessEntries(self.control_planes), PodIdentities(self.control_planes)
        self.node_groups = NodeGroups(self.control_planes, entries, self.capacity)
        self.nodes = Nodes(kubeconfig) if kubeconfig else None
        each: tuple[Any, ...] = (
            self.capacity,
            self.control_planes,
            Addons(self.control_planes, identities),
            entries,
            identities,
            self.node_groups,
            FileSystems(),
            LogKeys(),
            LoadBalancers(),
            Prometheus(),
            ScheduledActions(),
            References(self.control_planes, self.node_groups),
        )
        self.handlers: dict[tuple[str, str], Handler] = {}
        for service in each:
            self.handlers.update(_handlers(service))

    def start(self, api: Api) -> None:
        """Brings the state back to life, then lets time take its course."""
        self._api = api
        api.settle = self._settle
        api.restore(self._happened)
        api.live = True
        api.tick()

    def _settle(self, now: datetime) -> None:
        if self._api.ticking:
            for block in self.capacity.arrivals():
                self._api.note("block", block=block)
                self.capacity.take(block)
            self._api.reseed()
        before = self.node_groups.picture()
        self.node_groups.settle(self._api, now)
        if self._api.ticking and self.node_groups.picture() != before:
            self._api.note("time")
        if self._api.live and self.nodes:
            self.nodes.show(self.node_groups.machines())

    def _happened(self, event: dict[str, Any]) -> None:
        if event["event"] == "block":
            self.capacity.take(event["block"])
        else:
            self.node_groups.settle(self._api, self._api.now)


def _handlers(service: Any) -> dict[tuple[str, str], Handler]:
    names = botocore.session.get_session().get_service_model(service.service).operation_names
    by_method = {xform_name(name): name for name in names}
    return {
        (service.service, by_method[method]): getattr(service, method) for method in dir(service) if method in by_method
    }
