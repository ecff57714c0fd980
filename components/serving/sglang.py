"""SGLang on whole accelerator nodes: one engine a node, GPUs by dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

CACHE_MOUNT = "/var/cache/engine"
"""Where compiled kernels are kept: a directory of the node's disks, so that a restart does not compile for an hour."""

CACHE_VARIABLES: Mapping[str, str] = {
    "SGLANG_CACHE_DIR": CACHE_MOUNT,
    "SGLANG_DG_CACHE_DIR": f"{CACHE_MOUNT}/deep_gemm",
    "SGLANG_JIT_CACHE_DIR": f"{CACHE_MOUNT}/jit",
    "TRITON_CACHE_DIR": f"{CACHE_MOUNT}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHE_MOUNT}/inductor",
    "TILELANG_CACHE_DIR": f"{CACHE_MOUNT}/tilelang",
    "CUDA_CACHE_PATH": f"{CACHE_MOUNT}/nv",
    "FLASHINFER_WORKSPACE_BASE": CACHE_MOUNT,
    "HF_MODULES_CACHE": f"{CACHE_MOUNT}/hf_modules",
}
"""Every place where SGLang and the compilers below it keep what they built (sglang 0.5.23, srt/environ.py). Newer builds
derive the rest from SGLANG_CACHE_DIR; older ones do not, so each is set."""

OFFLINE_VARIABLES: Mapping[str, str] = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""The engine reads the verified copy and nothing else; it holds no hub token."""

SHM_MOUNT = "/dev/shm"
DEVICE_CLASS = "gpu.nvidia.com"
GPU_TAINT = "nvidia.com/gpu"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """An HTTP probe: path on the engine's port, seconds between and for each try, tries before it counts as failed."""

    path: str
    period_seconds: int
    timeout_seconds: int
    failure_threshold: int

    def manifest(self) -> dict[str, Any]:
        """The probe as Kubernetes has it."""
        return {
            "httpGet": {"path": self.path, "port": "http"},
            "periodSeconds": self.period_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "failureThreshold": self.failure_threshold,
        }


@dataclass(frozen=True, kw_only=True)
class NodeDisk:
    """Weights in a directory of the node's own disks. mount: of the array; a node without it refuses the pod."""

    mount: str

    def volume(self) -> dict[str, Any]:
        """`Directory`, not `DirectoryOrCreate`: without the array the latter would quietly use the small root volume."""
        return {"name": "weights", "hostPath": {"path": self.mount, "type": "Directory"}}


@dataclass(frozen=True, kw_only=True)
class SharedVolume:
    """Weights on a volume that every node mounts. claim: name of the PersistentVolumeClaim."""

    claim: str

    def volume(self) -> dict[str, Any]:
        """The claim, read-only."""
        return {"name": "weights", "persistentVolumeClaim": {"claimName": self.claim, "readOnly": True}}


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The verified copy of one revision.

    store: what holds it. directory: of the revision inside the store. cache: where the container has the hub's cache.
    repo, revision: the engine finds the copy under these, as if it had downloaded it itself.
    """

    store: NodeDisk | SharedVolume
    directory: str
    repo: str
    revision: str
    cache: str = "/mnt/models"

    @property
    def mount_path(self) -> str:
        """The directory in which huggingface_hub looks for a revision when it is offline."""
        return f"{self.cache}/models--{self.repo.replace('/', '--')}/snapshots/{self.revision}"


@dataclass(frozen=True, kw_only=True)
class ClaimedGpus:
    """GPUs by dynamic resource allocation: exactly `count` that fit the CEL selector, whatever node they are on."""

    count: int
    selector: str


@dataclass(frozen=True, kw_only=True)
class PluginGpus:
    """GPUs by the device plugin, which knows a number only: the instance type keeps other GPUs out."""

    count: int
    instance_type: str


@dataclass(frozen=True, kw_only=True)
class SglangArgs:
    """One engine deployment.

    namespace: where it runs. labels: what the router selects by, on every pod. image: by digest. command, flags: in order.
    replicas: one a node. gpus: the devices of one replica. cpu, memory_gib: requested;
    memory is also the limit and holds shm_gib. node_disk: mount of the node's array, for compiled kernels. grace_seconds:
    time for running requests after the pod left the router's list, of which drain_seconds are for the router to notice.
    ready_seconds: how long the deployment may take; None: it is not waited for, because its nodes do not exist yet.
    gate: an init container that ends well only when the weights are there and verified.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    image: str
    command: Sequence[str]
    flags: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    replicas: int
    port: int
    gpus: ClaimedGpus | PluginGpus
    cpu: int
    memory_gib: int
    shm_gib: int
    node_selector: Mapping[str, str]
    node_disk: str
    weights: Weights
    gate: Mapping[str, Any] | None
    startup: Probe
    liveness: Probe
    readiness: Probe
    grace_seconds: int
    drain_seconds: int
    ready_seconds: int | None


class Sglang(pulumi.ComponentResource):
    """A Deployment of SGLang servers with their claim template, disruption budget and Service.

    A rollout needs no spare node: the old replica ends before the new one starts. At most one replica is disturbed at a time.

    deployment: the Deployment. service: name of the Service, for checks that address an engine directly.
    """

    def __init__(self, name: str, *, args: SglangArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:Sglang", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        needed: list[pulumi.Resource] = []
        if isinstance(args.gpus, ClaimedGpus):
            template = k8s.resource.v1.ResourceClaimTemplate(
                f"{name}-gpus",
                metadata={"name": f"{name}-gpus", "namespace": args.namespace},
                spec=claim_template(args.gpus),
                opts=child,
            )
            needed.append(template)
        k8s.policy.v1.PodDisruptionBudget(
            name,
            metadata={"name": name, "namespace": args.namespace},
            spec={"maxUnavailable": 1, "selector": {"matchLabels": dict(args.labels)}},
            opts=child,
        )
        k8s.core.v1.Service(
            name,
            metadata={
                "name": name,
                "namespace": args.namespace,
                # Before its nodes exist a Service has no endpoints; it is right all the same.
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={"selector": dict(args.labels), "ports": [{"name": "http", "port": args.port, "targetPort": "http"}]},
            opts=child,
        )
        wait = {} if args.ready_seconds is not None else {"annotations": {"pulumi.com/skipAwait": "true"}}
        self.deployment = k8s.apps.v1.Deployment(
            name,
            metadata={"name": name, "namespace": args.namespace, "labels": dict(args.labels), **wait},
            spec={
                "replicas": args.replicas,
                "selector": {"matchLabels": dict(args.labels)},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "progressDeadlineSeconds": args.ready_seconds or NEVER_GIVE_UP_SECONDS,
                "revisionHistoryLimit": 3,
                "template": {"metadata": {"labels": dict(args.labels)}, "spec": pod_spec(args, claim=f"{name}-gpus")},
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                custom_timeouts=pulumi.CustomTimeouts(create=_timeout(args), update=_timeout(args)),
            ),
        )
        self.service = name
        self.register_outputs({"service": name})


NEVER_GIVE_UP_SECONDS = 2**31 - 1
"""A Deployment whose nodes come with a block that starts in days must not be reported as failed until then."""


def _timeout(args: SglangArgs) -> str:
    return f"{args.ready_seconds or 600}s"


def claim_template(gpus: ClaimedGpus) -> dict[str, Any]:
    """A ResourceClaimTemplate's spec: exactly so many devices of NVIDIA's class that fit the selector."""
    request = {
        "deviceClassName": DEVICE_CLASS,
        "allocationMode": "ExactCount",
        "count": gpus.count,
        "selectors": [{"cel": {"expression": gpus.selector}}],
    }
    return {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}


def pod_spec(args: SglangArgs, *, claim: str) -> dict[str, Any]:
    """The engine's pod: one container that owns every GPU of its node."""
    variables = {**OFFLINE_VARIABLES, "HF_HUB_CACHE": args.weights.cache, **CACHE_VARIABLES, **args.environment}
    weights_mount = {
        "name": "weights",
        "mountPath": args.weights.mount_path,
        "subPath": args.weights.directory,
        "readOnly": True,
    }
    quantity: dict[str, str] = {"memory": f"{args.memory_gib}Gi"}
    claims: dict[str, Any] = {}
    node_selector = dict(args.node_selector)
    if isinstance(args.gpus, PluginGpus):
        quantity["nvidia.com/gpu"] = str(args.gpus.count)
        node_selector["node.kubernetes.io/instance-type"] = args.gpus.instance_type
    else:
        claims = {"claims": [{"name": "gpus"}]}
    container = {
        "name": "engine",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(args.command),
        "args": list(args.flags),
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "ports": [{"name": "http", "containerPort": args.port}],
        "resources": {
            **claims,
            "requests": {"cpu": str(args.cpu), **quantity},
            "limits": quantity,
        },
        "startupProbe": args.startup.manifest(),
        "livenessProbe": args.liveness.manifest(),
        "readinessProbe": args.readiness.manifest(),
        "lifecycle": {"preStop": {"sleep": {"seconds": args.drain_seconds}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            weights_mount,
            {"name": "caches", "mountPath": CACHE_MOUNT, "subPath": f"caches/{image_key(args.image)}"},
            {"name": "shm", "mountPath": SHM_MOUNT},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": node_selector,
        "tolerations": [{"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": args.grace_seconds,
        **({"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": claim}]} if claims else {}),
        "initContainers": [dict(args.gate)] if args.gate else [],
        "containers": [container],
        "volumes": [
            args.weights.store.volume(),
            {"name": "caches", "hostPath": {"path": args.node_disk, "type": "Directory"}},
            # All ranks share this pod's IPC namespace; NCCL's shared memory needs room, not the host's namespace.
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{args.shm_gib}Gi"}},
        ],
    }


def image_key(image: str) -> str:
    """A directory name for what was compiled by one image: another build must not load it."""
    _, _, digest = image.partition("@sha256:")
    if not digest:
        raise ValueError(f"{image} has no digest: compiled kernels of different builds would mix under one name")
    return digest[:16]
