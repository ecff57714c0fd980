"""SGLang on whole accelerator nodes: one engine a node, GPUs by dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from planning.workload import EngineWorkload, GpuClaim, Probes

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

SHM_MOUNT = "/dev/shm"
GPU_TAINT = "nvidia.com/gpu"


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
class SglangArgs:
    """One engine deployment.

    workload: what the plan says about the engine. namespace: where it runs. image: the workload's, from the mirror if there
    is one. node_selector: of its nodes. node_disk: mount of a node's array, for compiled kernels. weights: what it reads.
    gates: init containers, in order, that end well only when node and weights are as planned.
    nodes_exist: whether the deployment is waited for; nodes that come with a block that has not started do not exist yet.
    """

    workload: EngineWorkload
    namespace: pulumi.Input[str]
    image: str
    node_selector: Mapping[str, str]
    node_disk: str
    weights: Weights
    gates: Sequence[Mapping[str, Any]]
    nodes_exist: bool


class Sglang(pulumi.ComponentResource):
    """A Deployment of SGLang servers with their claim template, disruption budget and Service.

    A rollout needs no spare node: the old replica ends before the new one starts. At most one replica is disturbed at a time.

    deployment: the Deployment. service: name of the Service, for checks that address an engine directly.
    """

    def __init__(self, name: str, *, args: SglangArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:Sglang", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        work = args.workload
        labels = dict(work.labels)
        needed: list[pulumi.Resource] = []
        if work.claim.selector:
            template = k8s.resource.v1.ResourceClaimTemplate(
                f"{name}-gpus",
                metadata={"name": f"{name}-gpus", "namespace": args.namespace},
                spec=claim_template(work.claim),
                opts=child,
            )
            needed.append(template)
        k8s.policy.v1.PodDisruptionBudget(
            name,
            metadata={"name": name, "namespace": args.namespace},
            spec={"maxUnavailable": 1, "selector": {"matchLabels": labels}},
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
            # Headless: checks ask every replica for its own counters.
            spec={
                "clusterIP": "None",
                "selector": labels,
                "ports": [{"name": "http", "port": work.port, "targetPort": "http"}],
            },
            opts=child,
        )
        wait: dict[str, Any] = {} if args.nodes_exist else {"annotations": {"pulumi.com/skipAwait": "true"}}
        self.deployment = k8s.apps.v1.Deployment(
            name,
            metadata={"name": name, "namespace": args.namespace, "labels": labels, **wait},
            spec={
                "replicas": work.group.replicas,
                "selector": {"matchLabels": labels},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "progressDeadlineSeconds": work.ready_seconds if args.nodes_exist else NEVER_GIVE_UP_SECONDS,
                "revisionHistoryLimit": 3,
                "template": {"metadata": {"labels": labels}, "spec": pod_spec(args, claim=f"{name}-gpus")},
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                custom_timeouts=pulumi.CustomTimeouts(create=_limit(work), update=_limit(work)),
            ),
        )
        self.service = name
        self.register_outputs({"service": name})


NEVER_GIVE_UP_SECONDS = 2**31 - 1
"""A Deployment whose nodes come with a block that starts in days must not be reported as failed until then."""


def _limit(work: EngineWorkload) -> str:
    """Replicas follow one another in a rollout, since none has a spare node."""
    return f"{work.ready_seconds * work.group.replicas}s"


def claim_template(claim: GpuClaim) -> dict[str, Any]:
    """A ResourceClaimTemplate's spec: exactly so many devices of the class that fit the selector."""
    request = {
        "deviceClassName": claim.device_class,
        "allocationMode": "ExactCount",
        "count": claim.count,
        "selectors": [{"cel": {"expression": claim.selector}}],
    }
    return {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}


def pod_spec(args: SglangArgs, *, claim: str) -> dict[str, Any]:
    """The engine's pod: one container that owns every GPU of its node."""
    work = args.workload
    variables = {"HF_HUB_CACHE": args.weights.cache, **CACHE_VARIABLES, **work.env}
    limits: dict[str, str] = {"memory": f"{work.memory_gib}Gi", "ephemeral-storage": f"{work.ephemeral_gib}Gi"}
    claimed = bool(work.claim.selector)
    devices: dict[str, Any] = {"claims": [{"name": "gpus"}]} if claimed else {}
    if not claimed:
        limits["nvidia.com/gpu"] = str(work.claim.count)
    container = {
        "name": "engine",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(work.command),
        "args": list(work.arguments),
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "ports": [{"name": "http", "containerPort": work.port}],
        "resources": {
            **devices,
            "requests": {"cpu": f"{work.cpu_millicores}m", **limits},
            "limits": limits,
        },
        **probes(work.probes),
        "lifecycle": {"preStop": {"sleep": {"seconds": work.drain_seconds}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            weights_mount(args.weights),
            {"name": "caches", "mountPath": CACHE_MOUNT, "subPath": f"caches/{image_key(args.image)}"},
            {"name": "shm", "mountPath": SHM_MOUNT},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(args.node_selector),
        "tolerations": [{"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": work.grace_seconds,
        **({"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": claim}]} if claimed else {}),
        "initContainers": [dict(gate) for gate in args.gates],
        "containers": [container],
        "volumes": [
            args.weights.store.volume(),
            {"name": "caches", "hostPath": {"path": args.node_disk, "type": "Directory"}},
            # All ranks share this pod's IPC namespace; NCCL's shared memory needs room, not the host's namespace.
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{work.shm_gib}Gi"}},
        ],
    }


def weights_mount(weights: Weights) -> dict[str, Any]:
    """The verified copy, read-only, where the hub's client looks for it."""
    return {"name": "weights", "mountPath": weights.mount_path, "subPath": weights.directory, "readOnly": True}


def probes(planned: Probes) -> dict[str, Any]:
    """The container's probes as Kubernetes has them."""
    named = {"startupProbe": planned.startup, "livenessProbe": planned.liveness, "readinessProbe": planned.readiness}
    return {
        name: {
            "httpGet": {"path": probe.path, "port": probe.port},
            "periodSeconds": probe.period_seconds,
            "timeoutSeconds": probe.timeout_seconds,
            "failureThreshold": probe.failure_threshold,
        }
        for name, probe in named.items()
        if probe
    }


def image_key(image: str) -> str:
    """A directory name for what was compiled by one image: another build must not load it."""
    _, _, digest = image.partition("@sha256:")
    if not digest:
        raise ValueError(f"{image} has no digest: compiled kernels of different builds would mix under one name")
    return digest[:16]
