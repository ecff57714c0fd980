"""The gateway: Envoy between the load balancer and the router."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.serving.gateway_config import KEYS_MOUNT, LISTEN_PORT, STATUS_PORT, ApiKeys, Auth, envoy_config

CONFIG_MOUNT = "/etc/gateway/config"
CONFIG_FILE = "envoy.json"
USER = 65532
LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "gateway"}


@dataclass(frozen=True, kw_only=True)
class GatewayArgs:
    """What a gateway needs to know.

    upstream: host and port of the router's Service. image: Envoy. node_port: where every node listens for the load
    balancer. drain_seconds: how long a pod that goes keeps its streams.
    """

    namespace: pulumi.Input[str]
    upstream_host: str
    upstream_port: int
    image: str
    auth: Auth
    idle_seconds: int
    drain_seconds: int
    node_port: int
    node_selector: Mapping[str, str]
    replicas: int = 2


class Gateway(pulumi.ComponentResource):
    """Envoy pods on system nodes, one a node, that check who asks and let only requests to the model through.

    service: name of the Service. port: of the Service inside the cluster. ready: the Deployment.
    """

    def __init__(self, name: str, *, args: GatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:Gateway", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        labels = {**LABELS, "app.kubernetes.io/instance": name}
        config = json.dumps(
            envoy_config(
                upstream_host=args.upstream_host,
                upstream_port=args.upstream_port,
                auth=args.auth,
                idle_seconds=args.idle_seconds,
            ),
            sort_keys=True,
        )
        metadata = {"name": name, "namespace": args.namespace, "labels": labels}
        stored = k8s.core.v1.ConfigMap(name, metadata=metadata, data={CONFIG_FILE: config}, opts=child)
        k8s.policy.v1.PodDisruptionBudget(
            name, metadata=metadata, spec={"maxUnavailable": 1, "selector": {"matchLabels": labels}}, opts=child
        )
        self.ready = k8s.apps.v1.Deployment(
            name,
            metadata=metadata,
            spec={
                "replicas": args.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    # Envoy reads its file once: a new one means new pods.
                    "metadata": {
                        "labels": labels,
                        "annotations": {"checksum/config": hashlib.sha256(config.encode()).hexdigest()},
                    },
                    "spec": pod_spec(args, name=name, labels=labels),
                },
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[stored]),
        )
        k8s.core.v1.Service(
            name,
            metadata=metadata,
            spec={
                "type": "NodePort",
                "selector": labels,
                "ports": [{"name": "http", "port": 80, "targetPort": "http", "nodePort": args.node_port}],
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.ready]),
        )
        self.service = name
        self.port = 80
        self.register_outputs({"service": name})


def pod_spec(args: GatewayArgs, *, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The gateway's pod."""
    volumes: list[dict[str, Any]] = [{"name": "config", "configMap": {"name": name}}]
    mounts = [{"name": "config", "mountPath": CONFIG_MOUNT, "readOnly": True}]
    if isinstance(args.auth, ApiKeys):
        volumes.append({"name": "keys", "secret": {"secretName": args.auth.secret}})
        mounts.append({"name": "keys", "mountPath": KEYS_MOUNT, "readOnly": True})
    status = {"httpGet": {"path": "/ready", "port": "status"}, "periodSeconds": 5, "timeoutSeconds": 2}
    container = {
        "name": "envoy",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["envoy"],
        "args": ["--config-path", f"{CONFIG_MOUNT}/{CONFIG_FILE}", "--log-level", "warning", "--disable-hot-restart"],
        "ports": [{"name": "http", "containerPort": LISTEN_PORT}, {"name": "status", "containerPort": STATUS_PORT}],
        "readinessProbe": status,
        "livenessProbe": {**status, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": args.drain_seconds}}},
        "resources": {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(args.node_selector),
        "terminationGracePeriodSeconds": args.drain_seconds + 15,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": dict(labels)},
            }
        ],
        "containers": [container],
        "volumes": volumes,
    }
