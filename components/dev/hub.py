"""The hub that a dev environment brings along, in the place of the Internet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components.serving.pods import PodTemplate, resources, restricted, without_token

MOUNT = "/hub"
FILE = "hub.py"


@dataclass(frozen=True, kw_only=True)
class HubArgs:
    """program: the hub's text, one Python file. image: any with python3. port: of the hub; files are on blob_port, the next one."""

    namespace: str
    labels: dict[str, str]
    program: str
    image: str
    port: int
    blob_port: int
    ready_seconds: int


class Hub(pulumi.ComponentResource):
    """A hub with a made-up model, behind a Service of its name.

    address: for HF_ENDPOINT. ready: it answers.
    """

    def __init__(self, name: str, *, args: HubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:dev:Hub", name, {}, opts)
        metadata = {"name": name, "namespace": args.namespace, "labels": args.labels}
        program = k8s.core.v1.ConfigMap(
            name, metadata=metadata, data={FILE: args.program}, opts=pulumi.ResourceOptions(parent=self)
        )
        deployment = k8s.apps.v1.Deployment(
            name,
            metadata=metadata,
            spec={
                "replicas": 1,
                "selector": {"matchLabels": args.labels},
                "strategy": {"type": "Recreate"},
                "progressDeadlineSeconds": args.ready_seconds,
                "template": _pod(name, args).manifest(),
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[program],
                custom_timeouts=pulumi.CustomTimeouts(create=f"{args.ready_seconds}s", update=f"{args.ready_seconds}s"),
            ),
        )
        ports = [{"name": "http", "port": args.port}, {"name": "blobs", "port": args.blob_port}]
        service = k8s.core.v1.Service(
            name,
            metadata=metadata,
            spec={"selector": args.labels, "ports": [{**port, "targetPort": port["name"]} for port in ports]},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[deployment]),
        )
        self.address = f"http://{name}:{args.port}"
        self.ready: list[pulumi.Resource] = [deployment, service]
        self.register_outputs({"address": self.address})


def _pod(name: str, args: HubArgs) -> PodTemplate:
    container = {
        "name": "hub",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", f"{MOUNT}/{FILE}"],
        "args": ["--host=0.0.0.0", f"--port={args.port}"],
        "ports": [{"name": "http", "containerPort": args.port}, {"name": "blobs", "containerPort": args.blob_port}],
        "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 1},
        "resources": resources(cpu_millicores=10, memory_mib=192),
        "securityContext": restricted(),
        "volumeMounts": [{"name": "program", "mountPath": MOUNT, "readOnly": True}],
    }
    spec = {
        **without_token(),
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [{"name": "program", "configMap": {"name": name}}],
    }
    digest = hashlib.sha256(args.program.encode()).hexdigest()
    return PodTemplate(labels=args.labels, annotations={"checksum/program": digest}, spec=spec)
