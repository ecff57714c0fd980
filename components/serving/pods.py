"""Pieces of pod specs that every workload of ours shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planning.workload import Probe

USER = 65532
"""The user that distroless images call nonroot."""


@dataclass(frozen=True, kw_only=True)
class PodTemplate:
    """A pod of a workload: its labels, annotations and spec."""

    labels: dict[str, str]
    spec: dict[str, Any]
    annotations: dict[str, str] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The template as Kubernetes has it."""
        annotations = {"annotations": self.annotations} if self.annotations else {}
        return {"metadata": {"labels": self.labels, **annotations}, "spec": self.spec}


def restricted() -> dict[str, Any]:
    """A container's security context under the restricted profile, with a read-only root."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": USER,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def without_token() -> dict[str, Any]:
    """What a pod has that neither talks to the Kubernetes API nor reads other services' addresses from its environment."""
    return {"automountServiceAccountToken": False, "enableServiceLinks": False}


def resources(*, cpu_millicores: int, memory_mib: int) -> dict[str, Any]:
    """Requests, and memory as the limit too: a pod that wants more ends alone, not with its neighbours."""
    memory = {"memory": f"{memory_mib}Mi"}
    return {"requests": {"cpu": f"{cpu_millicores}m", **memory}, "limits": memory}


def http_probe(probe: Probe) -> dict[str, Any]:
    """A planned probe as Kubernetes has it."""
    return {
        "httpGet": {"path": probe.path, "port": probe.port},
        "periodSeconds": probe.period_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "failureThreshold": probe.failure_threshold,
    }


def variables(values: dict[str, str]) -> list[dict[str, Any]]:
    """Environment variables as Kubernetes has them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def field_variable(name: str, path: str) -> dict[str, Any]:
    """An environment variable out of the pod's own fields."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
