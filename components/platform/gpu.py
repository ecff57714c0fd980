"""NVIDIA's software on accelerator nodes: who hands out GPUs, and who reports on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

NAMESPACE = "nvidia"
"""The DRA driver's chart refuses `default`."""

DCGM_PORT = 9400
DCGM_LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "dcgm-exporter"}


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """Where a chart comes from: an OCI reference or a directory, or a name in a chart repository.

    version, repository: None for a directory.
    """

    chart: str
    version: str | None = None
    repository: str | None = None

    def arguments(self) -> dict[str, Any]:
        """As helm.v4.Chart takes it."""
        arguments: dict[str, Any] = {"chart": self.chart}
        if self.version:
            arguments["version"] = self.version
        if self.repository:
            arguments["repository_opts"] = {"repo": self.repository}
        return arguments


@dataclass(frozen=True, kw_only=True)
class DraDriver:
    """NVIDIA's driver for dynamic resource allocation: GPUs as devices with attributes that a claim selects by."""

    source: ChartSource
    image_repository: str
    image_tag: str

    def values(self) -> dict[str, Any]:
        """Chart values: GPUs, and no compute domains, whose plugin crashes on nodes without multi-node NVLink
        (kubernetes-sigs/dra-driver-nvidia-gpu#1264). The override says that no device plugin competes for the GPUs."""
        return {
            "gpuResourcesEnabledOverride": True,
            "nvidiaDriverRoot": "/",
            "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}},
            "resourceApiVersion": "resource.k8s.io/v1",
            "image": {"repository": self.image_repository, "tag": self.image_tag},
        }


@dataclass(frozen=True, kw_only=True)
class DevicePlugin:
    """NVIDIA's device plugin: GPUs as a number, `nvidia.com/gpu`."""

    source: ChartSource
    image_repository: str
    image_tag: str

    def values(self) -> dict[str, Any]:
        """Chart values: on nodes with GPUs only. MOFED and GDRCopy stay off: they clash with EFA (NVIDIA/k8s-device-plugin#1692)."""
        return {
            "image": {"repository": self.image_repository, "tag": self.image_tag},
            "mofedEnabled": False,
            "gdrcopyEnabled": False,
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        }


@dataclass(frozen=True, kw_only=True)
class GpuSoftwareArgs:
    """allocator: the one that hands out GPUs; two at once would hand out the same GPU twice. exporter_image: DCGM exporter."""

    allocator: DraDriver | DevicePlugin
    exporter_image: str
    node_selector: Mapping[str, str] = field(default_factory=dict)


class GpuSoftware(pulumi.ComponentResource):
    """The GPU allocator and the metrics exporter, on every accelerator node as it joins.

    allocator: its chart; engines depend on it. namespace_made: where both run.
    """

    def __init__(self, name: str, *, args: GpuSoftwareArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:GpuSoftware", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = k8s.core.v1.Namespace(NAMESPACE, metadata={"name": NAMESPACE}, opts=child)
        self.allocator = k8s.helm.v4.Chart(
            f"{name}-allocator",
            namespace=NAMESPACE,
            **args.allocator.source.arguments(),
            values=args.allocator.values(),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace], transforms=[claims_only]),
        )
        k8s.apps.v1.DaemonSet(
            f"{name}-dcgm-exporter",
            metadata={"name": "dcgm-exporter", "namespace": NAMESPACE, "labels": dict(DCGM_LABELS)},
            spec={
                "selector": {"matchLabels": dict(DCGM_LABELS)},
                "template": {"metadata": {"labels": dict(DCGM_LABELS)}, "spec": exporter_pod(args)},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        self.namespace_made = namespace
        self.register_outputs({})


def claims_only(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Takes `extendedResourceName` out of the driver's device classes: GPUs are asked for in one way, by claim.

    API servers without the gate for it drop the field, and every refresh would then find a difference.
    """
    spec = args.props.get("spec") if args.type_ == "kubernetes:resource.k8s.io/v1:DeviceClass" else None
    if not isinstance(spec, dict) or "extendedResourceName" not in spec:
        return None
    plain = {name: value for name, value in spec.items() if name != "extendedResourceName"}
    return pulumi.ResourceTransformResult(props={**args.props, "spec": plain}, opts=args.opts)


def exporter_pod(args: GpuSoftwareArgs) -> dict[str, Any]:
    """DCGM exporter's pod. It watches all GPUs without having any allocated, hence the privilege."""
    container = {
        "name": "dcgm-exporter",
        "image": args.exporter_image,
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "DCGM_EXPORTER_LISTEN", "value": f":{DCGM_PORT}"},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility,compute"},
        ],
        "ports": [{"name": "metrics", "containerPort": DCGM_PORT}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": "metrics"},
            "initialDelaySeconds": 30,
            "periodSeconds": 15,
        },
        "resources": {"requests": {"cpu": "200m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        "nodeSelector": dict(args.node_selector),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
    }
