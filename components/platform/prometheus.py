"""Prometheus in the cluster, and dashboards for a Grafana that looks for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

CONFIG_MOUNT = "/etc/prometheus"
DATA_MOUNT = "/prometheus"
PORT = 9090
USER = 65534
SHUTDOWN_SECONDS = 300
"""Time to write the head block to disk."""


@dataclass(frozen=True, kw_only=True)
class PrometheusArgs:
    """scrape_configuration, rules: as Prometheus reads them; rules by file name. namespaces: where pods may be looked up.

    storage_gib, retention_days: of the samples' volume. provisioner: CSI driver that makes it.
    """

    namespace: pulumi.Input[str]
    image: str
    scrape_configuration: str
    rules: Mapping[str, str]
    namespaces: Sequence[str]
    provisioner: str
    storage_gib: int
    retention_days: int
    node_selector: Mapping[str, str]


class Prometheus(pulumi.ComponentResource):
    """One Prometheus with a volume that goes with it.

    service: its name, port 9090: for Grafana, an alert manager and queries.
    """

    def __init__(self, name: str, *, args: PrometheusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:Prometheus", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        labels = {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/instance": name}
        metadata = {"name": name, "namespace": args.namespace, "labels": labels}
        files = {"prometheus.yaml": _with_rules(args.scrape_configuration), **args.rules}
        k8s.core.v1.ConfigMap(name, metadata=metadata, data=files, opts=child)
        claim = self._volume(name, args=args, metadata=metadata)
        self._rights(name, args=args, metadata=metadata)
        k8s.core.v1.Service(
            name,
            metadata=metadata,
            spec={"selector": labels, "ports": [{"name": "http", "port": PORT, "targetPort": "http"}]},
            opts=child,
        )
        k8s.apps.v1.StatefulSet(
            name,
            metadata=metadata,
            spec={
                "serviceName": name,
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": {"checksum/config": _digest(files)}},
                    "spec": _pod(args, name=name),
                },
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[claim]),
        )
        self.service = name
        self.register_outputs({"service": name})

    def _volume(self, name: str, *, args: PrometheusArgs, metadata: Mapping[str, Any]) -> pulumi.Resource:
        """A claim of its own, not a StatefulSet's template: those outlive the StatefulSet, and their disks the cluster."""
        child = pulumi.ResourceOptions(parent=self)
        storage = k8s.storage.v1.StorageClass(
            name,
            metadata={"name": name},
            provisioner=args.provisioner,
            parameters={"type": "gp3", "encrypted": "true"},
            reclaim_policy="Delete",
            volume_binding_mode="WaitForFirstConsumer",
            allow_volume_expansion=True,
            opts=child,
        )
        claim: pulumi.Resource = k8s.core.v1.PersistentVolumeClaim(
            name,
            # It is bound once the pod is placed, which the StatefulSet's own wait shows.
            metadata={**metadata, "annotations": {"pulumi.com/skipAwait": "true"}},
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": name,
                "resources": {"requests": {"storage": f"{args.storage_gib}Gi"}},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[storage]),
        )
        return claim

    def _rights(self, name: str, *, args: PrometheusArgs, metadata: Mapping[str, Any]) -> None:
        """Prometheus may look up pods in the listed namespaces, and nothing else."""
        child = pulumi.ResourceOptions(parent=self)
        k8s.core.v1.ServiceAccount(name, metadata=metadata, opts=child)
        for namespace in args.namespaces:
            there = {"name": f"{name}-discovery", "namespace": namespace}
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
            k8s.rbac.v1.Role(f"{name}-{namespace}", metadata=there, rules=rules, opts=child)
            k8s.rbac.v1.RoleBinding(
                f"{name}-{namespace}",
                metadata=there,
                role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"{name}-discovery"},
                subjects=[{"kind": "ServiceAccount", "name": name, "namespace": args.namespace}],
                opts=child,
            )


def _with_rules(configuration: str) -> str:
    return f"{configuration}rule_files: [{CONFIG_MOUNT}/*.rules.yaml]\n"


def _digest(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()


def _pod(args: PrometheusArgs, *, name: str) -> dict[str, Any]:
    probe = {"periodSeconds": 10, "timeoutSeconds": 5}
    container = {
        "name": "prometheus",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            f"--config.file={CONFIG_MOUNT}/prometheus.yaml",
            f"--storage.tsdb.path={DATA_MOUNT}",
            f"--storage.tsdb.retention.time={args.retention_days}d",
            # Ten per cent are left for the write-ahead log.
            f"--storage.tsdb.retention.size={args.storage_gib * 9 // 10}GB",
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": "http"}, **probe},
        "livenessProbe": {"httpGet": {"path": "/-/healthy", "port": "http"}, **probe},
        "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "8Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_MOUNT, "readOnly": True},
            {"name": "data", "mountPath": DATA_MOUNT},
        ],
    }
    return {
        "serviceAccountName": name,
        "enableServiceLinks": False,
        "nodeSelector": dict(args.node_selector),
        "securityContext": {
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "terminationGracePeriodSeconds": SHUTDOWN_SECONDS,
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": name}},
            {"name": "data", "persistentVolumeClaim": {"claimName": name}},
        ],
    }


class Dashboards(pulumi.ComponentResource):
    """Grafana dashboards as ConfigMaps with the label that Grafana's sidecar looks for."""

    def __init__(
        self,
        name: str,
        *,
        namespace: pulumi.Input[str],
        dashboards: Mapping[str, Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("llm-serving:platform:Dashboards", name, {}, opts)
        for key, content in dashboards.items():
            k8s.core.v1.ConfigMap(
                f"{name}-{key}",
                metadata={"name": f"dashboard-{key}", "namespace": namespace, "labels": {"grafana_dashboard": "1"}},
                data={f"{key}.json": json.dumps(content, sort_keys=True)},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
