"""Engines: images by digest, no tokens, no spare accelerators, no cache that answers wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policies.pods import WORKLOADS, containers, pods
from policies.rule import Rule, items, part

ACCELERATOR_TAINTS = ("nvidia.com/gpu", "google.com/tpu")
TOKEN_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def _engines(workload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Containers that have accelerators."""
    return [
        container
        for container in containers(workload)
        if part(container, "resources", "claims")
        or any(name in ACCELERATOR_TAINTS for name in (part(container, "resources", "limits") or {}))
    ]


def _engine_without_digest(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in _engines(workload):
        if "@sha256:" not in str(container.get("image", "")):
            yield f"The engine image {container.get('image')} has no digest: development tags move."


def _token_in_engine(workload: Mapping[str, Any]) -> Iterator[str]:
    if not _engines(workload):
        return
    for container in containers(workload):
        held = [entry.get("name") for entry in items(container.get("env")) if entry.get("name") in TOKEN_NAMES]
        if held:
            yield f"The container {container.get('name')} has {', '.join(held)}: engines read a verified copy and need no hub token."
    if any(pod.get("automountServiceAccountToken") is not False for pod in pods(workload)):
        yield "An engine gets a token of the Kubernetes API: set automountServiceAccountToken to false."


def _two_allocators(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in containers(workload):
        counted = [name for name in (part(container, "resources", "limits") or {}) if name == "nvidia.com/gpu"]
        if counted and part(container, "resources", "claims"):
            yield f"The container {container.get('name')} takes GPUs by claim and by device plugin: each may hand out the same GPU."


def _spare_needed(deployment: Mapping[str, Any]) -> Iterator[str]:
    if not _engines(deployment):
        return
    strategy = part(deployment, "spec", "strategy") or {}
    surge = part(strategy, "rollingUpdate", "maxSurge")
    if part(strategy, "type") != "Recreate" and surge not in (0, 0.0, "0", "0%"):
        yield "A rollout would start a new engine before the old one ends, and there are no spare accelerators: set maxSurge to 0."


def _wrong_cache(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in _engines(workload):
        words = {
            str(word).partition("=")[0] for word in (*items(container.get("command")), *items(container.get("args")))
        }
        on_cuda = part(container, "resources", "claims") or "nvidia.com/gpu" in (
            part(container, "resources", "limits") or {}
        )
        if "sglang.launch_server" in words and "--enable-hierarchical-cache" in words and on_cuda:
            yield (
                "HiCache on CUDA gives a hybrid model wrong answers without an error (sgl-project/sglang#39830): "
                "take --enable-hierarchical-cache out."
            )


def _host_open(workload: Mapping[str, Any]) -> Iterator[str]:
    shared = [name for name in ("hostNetwork", "hostPID", "hostIPC") if any(pod.get(name) for pod in pods(workload))]
    if shared and _engines(workload):
        yield f"An engine shares {', '.join(shared)} with its node; all its ranks are in one pod and need none of it."


RULES = (
    Rule(
        name="engines-by-digest",
        description="Engine images are pinned by digest.",
        types=WORKLOADS,
        check=_engine_without_digest,
    ),
    Rule(
        name="engines-hold-no-token",
        description="Engines hold neither hub nor API tokens.",
        types=WORKLOADS,
        check=_token_in_engine,
    ),
    Rule(
        name="one-gpu-allocator",
        description="GPUs are handed out by one allocator.",
        types=WORKLOADS,
        check=_two_allocators,
    ),
    Rule(
        name="no-spare-accelerator",
        description="A rollout works with the accelerators that are there.",
        types=frozenset({"kubernetes:apps/v1:Deployment"}),
        check=_spare_needed,
    ),
    Rule(name="no-hicache-on-cuda", description="No cache that answers wrongly.", types=WORKLOADS, check=_wrong_cache),
    Rule(
        name="engines-keep-to-their-pod",
        description="Engines share no namespace with their node.",
        types=WORKLOADS,
        check=_host_open,
    ),
)
