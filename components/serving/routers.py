"""The routers that can be put in front of engines, each as the pod that it is. No Pulumi."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from components.serving.envoy_picker_config import (
    PICKER_HEALTH_PORT,
    PICKER_METRICS_PORT,
    PICKER_PORT,
    STATUS_PORT,
    envoy_picker_config,
)
from components.serving.pods import field_variable, resources, restricted
from planning.router import Flavour, RouterPlan, SplitRouterPlan

CONFIG_MOUNT = "/config"
ENVOY_FILE, PICKER_FILE = "envoy.json", "picker.json"
POOL_GROUP = "inference.networking.k8s.io"

CREDENTIALS_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, kw_only=True)
class EndpointPicker:
    """Envoy and an endpoint picker in one pod: the picker scores the pool's engines for each request.

    plan: which picker, its configuration, and which pods are its pool. picker_image: of that flavour.
    """

    plan: RouterPlan
    picker_image: str
    envoy_image: str

    @property
    def flavour(self) -> Flavour:
        """llm-d for its own release, inference-extension for the Gateway API project's."""
        return self.plan.flavour

    def files(self, *, port: int) -> dict[str, str]:
        """Configuration files by name. JSON is YAML, and has one form only."""
        return {
            ENVOY_FILE: _json(envoy_picker_config(port=port)),
            PICKER_FILE: _json(self.plan.picker.document()),
        }

    def containers(self, *, pool: str, port: int, cpu_millicores: int, memory_mib: int) -> list[dict[str, Any]]:
        """The pod's containers. Requests and limits are each container's."""
        quantity = resources(cpu_millicores=cpu_millicores, memory_mib=memory_mib)
        mount = {"name": "config", "mountPath": CONFIG_MOUNT, "readOnly": True}
        health = {"grpc": {"port": PICKER_HEALTH_PORT, "service": "inference-extension"}}
        picker = {
            "name": "picker",
            "image": self.picker_image,
            "imagePullPolicy": "IfNotPresent",
            "args": [
                f"--pool-name={pool}",
                f"--pool-group={POOL_GROUP}",
                f"--config-file={CONFIG_MOUNT}/{PICKER_FILE}",
                f"--grpc-port={PICKER_PORT}",
                f"--grpc-health-port={PICKER_HEALTH_PORT}",
                f"--metrics-port={PICKER_METRICS_PORT}",
                # Envoy is in the same pod, and a NetworkPolicy says who may read metrics.
                "--secure-serving=false",
                "--metrics-endpoint-auth=false",
                "--tracing=false",
                "--zap-encoder=json",
                "--v=1",
            ],
            "env": [
                field_variable("NAMESPACE", "metadata.namespace"),
                field_variable("POD_NAME", "metadata.name"),
            ],
            "ports": [{"name": "metrics", "containerPort": PICKER_METRICS_PORT}],
            "readinessProbe": {**health, "periodSeconds": 2},
            "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6},
            "resources": quantity,
            "securityContext": restricted(),
            "volumeMounts": [
                mount,
                {"name": "api-credentials", "mountPath": CREDENTIALS_MOUNT, "readOnly": True},
            ],
        }
        status = {"httpGet": {"path": "/ready", "port": STATUS_PORT}, "timeoutSeconds": 2}
        envoy = {
            "name": "envoy",
            "image": self.envoy_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["envoy"],
            "args": [
                # Envoy's parser knows no --name=value.
                *("--config-path", f"{CONFIG_MOUNT}/{ENVOY_FILE}"),
                *("--log-level", "warning"),
                *("--concurrency", "2"),
                "--disable-hot-restart",
            ],
            "ports": [{"name": "http", "containerPort": port}, {"name": "status", "containerPort": STATUS_PORT}],
            "readinessProbe": {**status, "periodSeconds": 2},
            "livenessProbe": {**status, "periodSeconds": 10, "failureThreshold": 6},
            "resources": quantity,
            "securityContext": restricted(),
            "volumeMounts": [mount],
        }
        return [picker, envoy]


@dataclass(frozen=True, kw_only=True)
class VllmRouter:
    """vLLM's own router: it runs the prompt on a prefill engine and has a decode engine fetch the cache and answer."""

    plan: SplitRouterPlan
    image: str

    def files(self, *, port: int) -> dict[str, str]:
        """It has none: everything is on its command line."""
        return {}

    def containers(self, *, pool: str, port: int, cpu_millicores: int, memory_mib: int) -> list[dict[str, Any]]:
        """The pod's container."""
        return [
            {
                "name": "router",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-m", "vllm_router.launch_router"],
                "args": self.arguments(port=port),
                "env": [{"name": "HOME", "value": "/tmp"}],
                "ports": [{"name": "http", "containerPort": port}, {"name": "metrics", "containerPort": METRICS_PORT}],
                "readinessProbe": {"httpGet": {"path": "/readiness", "port": port}, "periodSeconds": 2},
                "livenessProbe": {
                    "httpGet": {"path": "/liveness", "port": port},
                    "periodSeconds": 10,
                    "failureThreshold": 6,
                },
                "startupProbe": {
                    "httpGet": {"path": "/liveness", "port": port},
                    "periodSeconds": 1,
                    "failureThreshold": 120,
                },
                "resources": resources(cpu_millicores=cpu_millicores, memory_mib=memory_mib),
                "securityContext": restricted(),
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
        ]

    def arguments(self, *, port: int) -> list[str]:
        """Prompts go where their beginning is cached; answers take turns over the decode ranks."""
        return [
            "--host=0.0.0.0",
            f"--port={port}",
            "--vllm-pd-disaggregation",
            "--prefill-policy=cache_aware",
            "--decode-policy=round_robin",
            *(part for address in self.plan.prefill for part in ("--prefill", address)),
            *(part for address in self.plan.decode for part in ("--decode", address)),
            "--worker-startup-check-interval=1",
            "--health-check-interval-secs=5",
            f"--prometheus-port={METRICS_PORT}",
            "--prometheus-host=0.0.0.0",
            "--log-level=warning",
        ]


METRICS_PORT = 29000

Backend = EndpointPicker | VllmRouter


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
