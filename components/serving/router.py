"""The router: one address for all engines of a shape."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.serving.envoy_picker_config import PICKER_PORT
from components.serving.pods import without_token
from components.serving.routers import POOL_GROUP, Backend, EndpointPicker
from planning.router import OBJECTIVE_GROUPS


@dataclass(frozen=True, kw_only=True)
class RouterArgs:
    """backend: which router, with its plan. port: of the Service and of the pod. cpu_millicores, memory_mib: of each container.

    grace_seconds: for running requests when the pod goes. ready_seconds: how long it may take to answer.
    """

    namespace: str
    backend: Backend
    labels: dict[str, str]
    port: int
    cpu_millicores: int
    memory_mib: int
    grace_seconds: int
    ready_seconds: int


class Router(pulumi.ComponentResource):
    """The router's Deployment and Service; for an endpoint picker also its pool, and the right to watch the pool's pods.

    One replica, which ends before its successor starts: what it knows of caches is in its memory, and two would each know half.

    endpoint: http://ADDRESS:PORT of the Service inside the cluster. ready: the Deployment, serving.
    """

    def __init__(self, name: str, *, args: RouterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:Router", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        metadata = {"name": name, "namespace": args.namespace, "labels": args.labels}
        files = args.backend.files(port=args.port)
        needed: list[pulumi.Resource] = []
        account: dict[str, Any] = {}
        if files:
            needed.append(k8s.core.v1.ConfigMap(name, metadata=metadata, data=files, opts=child))
        if isinstance(args.backend, EndpointPicker):
            needed += _pool(name, args=args, backend=args.backend, opts=child)
            account = {"serviceAccountName": name}
        digest = hashlib.sha256("\n".join(files.values()).encode()).hexdigest()
        deployment = k8s.apps.v1.Deployment(
            name,
            metadata=metadata,
            spec={
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": args.labels},
                "progressDeadlineSeconds": args.ready_seconds,
                "revisionHistoryLimit": 3,
                "template": {
                    # Both routers read their files once: a new one means a new pod.
                    "metadata": {
                        "labels": args.labels,
                        **({"annotations": {"checksum/config": digest}} if files else {}),
                    },
                    "spec": {
                        **without_token(),
                        **account,
                        "terminationGracePeriodSeconds": args.grace_seconds,
                        "containers": args.backend.containers(
                            pool=name,
                            port=args.port,
                            cpu_millicores=args.cpu_millicores,
                            memory_mib=args.memory_mib,
                        ),
                        "volumes": _volumes(name, backend=args.backend),
                    },
                },
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                custom_timeouts=pulumi.CustomTimeouts(create=f"{args.ready_seconds}s", update=f"{args.ready_seconds}s"),
            ),
        )
        service = k8s.core.v1.Service(
            name,
            metadata=metadata,
            spec={"selector": args.labels, "ports": [{"name": "http", "port": args.port, "targetPort": "http"}]},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[deployment]),
        )
        self.endpoint = pulumi.Output.format("http://{0}:{1}", service.spec.cluster_ip, args.port)
        self.ready: list[pulumi.Resource] = [deployment, service]
        self.register_outputs({"endpoint": self.endpoint})


def _volumes(name: str, *, backend: Backend) -> list[dict[str, Any]]:
    if not isinstance(backend, EndpointPicker):
        return [{"name": "tmp", "emptyDir": {}}]
    return [
        {"name": "config", "configMap": {"name": name}},
        {"name": "api-credentials", "projected": {"sources": API_CREDENTIALS}},
    ]


API_CREDENTIALS: list[dict[str, Any]] = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]
"""What a pod would get automatically, for the one container that needs it: Envoy, which faces the callers, has no token."""


def _pool(
    name: str, *, args: RouterArgs, backend: EndpointPicker, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    metadata = {"name": name, "namespace": args.namespace, "labels": args.labels}
    account = k8s.core.v1.ServiceAccount(name, metadata=metadata, automount_service_account_token=False, opts=opts)
    watch = ["get", "list", "watch"]
    role = k8s.rbac.v1.Role(
        name,
        metadata=metadata,
        rules=[
            {"apiGroups": [""], "resources": ["pods"], "verbs": watch},
            {"apiGroups": [POOL_GROUP], "resources": ["inferencepools"], "verbs": watch},
            {
                "apiGroups": list(OBJECTIVE_GROUPS[backend.flavour]),
                "resources": ["inferenceobjectives", "inferencemodelrewrites"],
                "verbs": watch,
            },
        ],
        opts=opts,
    )
    binding = k8s.rbac.v1.RoleBinding(
        name,
        metadata=metadata,
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": args.namespace}],
        role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        opts=pulumi.ResourceOptions(parent=opts.parent, depends_on=[account, role]),
    )
    pool = k8s.apiextensions.CustomResource(
        name,
        api_version=f"{POOL_GROUP}/v1",
        kind="InferencePool",
        metadata=metadata,
        spec={
            "selector": {"matchLabels": backend.plan.match_labels},
            "targetPorts": [{"number": port} for port in backend.plan.target_ports],
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": name,
                "port": {"number": PICKER_PORT},
                # Without the picker no request is served: better refused than on an engine that does not have its prefix.
                "failureMode": "FailClose",
            },
        },
        opts=opts,
    )
    return [account, role, binding, pool]
