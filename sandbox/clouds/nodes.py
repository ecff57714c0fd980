"""Nodes that KWOK keeps alive on the embedded control plane, in step with the machines that a simulated cloud runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

MADE_BY = "llm-serving/simulated-cloud"
"""Label of the nodes that a simulated cloud has made: it never touches another."""

KWOK = {"kwok.x-k8s.io/node": "fake"}
"""Annotation by which KWOK takes a node over (kwok --manage-nodes-with-annotation-selector)."""

DEVICES_API = "resource.k8s.io"
DEVICES_VERSION = "v1"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine as its node shows it to Kubernetes.

    allocatable: quantities by resource name. taints: as Kubernetes has them. devices: of a DRA driver, as a ResourceSlice
    lists them. driver: that publishes them.
    """

    name: str
    cloud: str
    provider_id: str
    address: str
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    kubelet_version: str
    driver: str | None = None
    devices: Sequence[Mapping[str, Any]] = ()


class Nodes:
    """Shows machines as nodes. A control plane that does not answer is asked again at the next look."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._shown: list[Machine] | None = None

    def show(self, machines: list[Machine]) -> None:
        """Makes the nodes of new machines and removes those whose machine is gone."""
        with self._lock:
            if machines == self._shown:
                return
            try:
                self._change(machines)
                self._shown = machines
            except (ApiException, HTTPError, OSError) as error:
                log.warning("nodes are not in step with the machines: %s", error)

    def _change(self, machines: list[Machine]) -> None:
        with kubernetes.config.new_client_from_config(str(self._kubeconfig)) as client:
            core = kubernetes.client.CoreV1Api(client)
            devices = kubernetes.client.CustomObjectsApi(client)
            wanted = {machine.name: machine for machine in machines}
            nodes: list[Any] = core.list_node(label_selector=MADE_BY).items
            there = {node.metadata.name for node in nodes}
            for name in sorted(there - wanted.keys()):
                _remove(core, devices, name)
            for name in sorted(wanted):
                if name not in there:
                    core.create_node(_node(wanted[name]))
                else:
                    core.patch_node(
                        name,
                        {
                            "metadata": {"labels": dict(wanted[name].labels)},
                            "spec": {"taints": list(wanted[name].taints)},
                        },
                    )
                if wanted[name].driver:
                    _publish(core, devices, wanted[name])


def _node(machine: Machine) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": {**machine.labels, "kubernetes.io/hostname": machine.name, MADE_BY: machine.cloud},
            "annotations": {**KWOK, "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"providerID": machine.provider_id, "taints": [*map(dict, machine.taints)]},
        "status": {
            "capacity": dict(machine.capacity),
            "allocatable": dict(machine.allocatable),
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
            ],
            "nodeInfo": {
                "architecture": machine.labels.get("kubernetes.io/arch", "amd64"),
                "operatingSystem": "linux",
                "kubeletVersion": machine.kubelet_version,
                "kubeProxyVersion": machine.kubelet_version,
                "kernelVersion": "6.12.0",
                "osImage": "Amazon Linux 2023 (simulated)" if machine.cloud == "aws" else "simulated",
                "containerRuntimeVersion": "containerd://2.2.4",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }


def _publish(core: Any, devices: Any, machine: Machine) -> None:
    name = f"{machine.name}-{machine.driver}"
    uid = core.read_node(machine.name).metadata.uid
    try:
        devices.create_cluster_custom_object(
            DEVICES_API,
            DEVICES_VERSION,
            "resourceslices",
            {
                "apiVersion": f"{DEVICES_API}/{DEVICES_VERSION}",
                "kind": "ResourceSlice",
                "metadata": {
                    "name": name,
                    "labels": {MADE_BY: machine.cloud},
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": uid, "controller": True}
                    ],
                },
                "spec": {
                    "driver": machine.driver,
                    "nodeName": machine.name,
                    "pool": {"name": machine.name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [*map(dict, machine.devices)],
                },
            },
        )
    except ApiException as error:
        if error.status != 409:
            raise


def _remove(core: Any, devices: Any, name: str) -> None:
    slices = devices.list_cluster_custom_object(DEVICES_API, DEVICES_VERSION, "resourceslices", label_selector=MADE_BY)
    for each in slices["items"]:
        if each["spec"].get("nodeName") == name:
            devices.delete_cluster_custom_object(
                DEVICES_API, DEVICES_VERSION, "resourceslices", each["metadata"]["name"]
            )
    core.delete_node(name)
