"""The S3 store that a dev environment brings along, in the place of a cloud's."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components.serving.pods import USER, PodTemplate, resources, restricted, without_token

MOUNT = "/data"
REGION = "us-east-1"
KEY_ID, KEY = "dev-store", "only-reachable-from-staging"
"""Not a secret: the store holds a made-up model, and the flow table lets staging alone speak to it."""


@dataclass(frozen=True, kw_only=True)
class ObjectStoreArgs:
    """image: versitygw. helper_image: any with python3; it makes the bucket. size: of the volume."""

    namespace: str
    labels: dict[str, str]
    bucket: str
    image: str
    helper_image: str
    port: int
    size: str
    ready_seconds: int


class ObjectStore(pulumi.ComponentResource):
    """versitygw over a small volume of the cluster's default storage class, behind a Service of its name.

    url: of the bucket. environment: what a client needs beside it. credentials: Secret with the client's variables. ready: it answers.
    """

    def __init__(self, name: str, *, args: ObjectStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:dev:ObjectStore", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        metadata = {"name": name, "namespace": args.namespace, "labels": args.labels}
        volume = k8s.core.v1.PersistentVolumeClaim(
            name,
            # Volumes that wait for their first pod are bound with it, not before.
            metadata={**metadata, "annotations": {"pulumi.com/skipAwait": "true"}},
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": args.size}}},
            opts=child,
        )
        secret = k8s.core.v1.Secret(
            name,
            metadata=metadata,
            string_data={"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY},
            opts=child,
        )
        deployment = k8s.apps.v1.Deployment(
            name,
            metadata=metadata,
            spec={
                "replicas": 1,
                "selector": {"matchLabels": args.labels},
                # The volume has one writer.
                "strategy": {"type": "Recreate"},
                "progressDeadlineSeconds": args.ready_seconds,
                "template": _pod(name, args).manifest(),
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[volume, secret],
                custom_timeouts=pulumi.CustomTimeouts(create=f"{args.ready_seconds}s", update=f"{args.ready_seconds}s"),
            ),
        )
        service = k8s.core.v1.Service(
            name,
            metadata=metadata,
            spec={"selector": args.labels, "ports": [{"name": "s3", "port": args.port, "targetPort": "s3"}]},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[deployment]),
        )
        self.url = f"s3://{args.bucket}"
        self.environment = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_S3": f"http://{name}:{args.port}"}
        self.credentials = name
        self.ready: list[pulumi.Resource] = [deployment, service]
        self.register_outputs({"url": self.url})


def _pod(name: str, args: ObjectStoreArgs) -> PodTemplate:
    mounts = [{"name": "data", "mountPath": MOUNT}]
    bucket = {
        "name": "bucket",
        "image": args.helper_image,
        "imagePullPolicy": "IfNotPresent",
        # A directory below the root is a bucket.
        "command": ["python3", "-c", f"import os; os.makedirs('{MOUNT}/{args.bucket}', exist_ok=True)"],
        "resources": resources(cpu_millicores=10, memory_mib=64),
        "securityContext": restricted(),
        "volumeMounts": mounts,
    }
    server = {
        "name": "store",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["versitygw"],
        "args": [f"--port=:{args.port}", f"--region={REGION}", "--health=/health", "posix", MOUNT],
        "env": [
            {"name": "ROOT_ACCESS_KEY_ID", "valueFrom": {"secretKeyRef": {"name": name, "key": "AWS_ACCESS_KEY_ID"}}},
            {
                "name": "ROOT_SECRET_ACCESS_KEY",
                "valueFrom": {"secretKeyRef": {"name": name, "key": "AWS_SECRET_ACCESS_KEY"}},
            },
        ],
        "ports": [{"name": "s3", "containerPort": args.port}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "s3"}, "periodSeconds": 1},
        "resources": resources(cpu_millicores=10, memory_mib=256),
        "securityContext": restricted(),
        "volumeMounts": mounts,
    }
    spec = {
        **without_token(),
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"fsGroup": USER},
        "initContainers": [bucket],
        "containers": [server],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
    }
    return PodTemplate(labels=args.labels, spec=spec)
