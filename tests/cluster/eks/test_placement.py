"""The engine's pod and claim, as the program makes them, before a real API server and a real scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from catalog.hardware import B200, B300, Accelerator
from sandbox import cluster
from sandbox.cluster import Layout
from tests.support.accelerator_nodes import DEVICE_CLASS, apply, devices, node
from tests.support.cluster import get
from tests.support.eks_program import program

NAMESPACE = "serving"


@cache
def manifests(replicas: int) -> tuple[dict[str, Any], ...]:
    """Claim template and Deployment, without what only Pulumi reads."""
    recording, _ = program(nodes={"count": replicas})
    wanted = (recording.one("ResourceClaimTemplate", "unified-gpus"), recording.one("apps/v1:Deployment", "unified"))
    return tuple(dict(found.inputs) for found in wanted)


@pytest.fixture
def serving(control_plane: Layout) -> Iterator[Layout]:
    apply(
        control_plane,
        DEVICE_CLASS,
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        },
    )
    yield control_plane
    for kind in ("deployments", "pods", "resourceclaims", "resourceclaimtemplates"):
        cluster.kubectl(control_plane, "delete", kind, "--all", f"--namespace={NAMESPACE}", "--wait=true")
    cluster.kubectl(control_plane, "delete", "resourceslices,nodes", "--all", "--wait=true")


def given(layout: Layout, *nodes: tuple[str, Accelerator, int]) -> None:
    for name, gpu, count in nodes:
        apply(layout, node(name), devices(name, gpu=gpu, count=count))
        cluster.kubectl(layout, "wait", f"node/{name}", "--for=condition=Ready", "--timeout=60s")


def refusal(layout: Layout) -> str:
    """Why the scheduler does not place the pod, once it has said so."""
    cluster.kubectl(
        layout,
        "wait",
        "pods",
        "--all",
        f"--namespace={NAMESPACE}",
        "--for=condition=PodScheduled=false",
        "--timeout=60s",
    )
    (pod,) = get(layout, "pods", f"--namespace={NAMESPACE}")["items"]
    return str(next(c["message"] for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"))


def test_the_engine_runs_on_eight_b300_and_not_on_eight_b200(serving: Layout) -> None:
    given(serving, ("b200", B200, 8), ("b300", B300, 8))
    apply(serving, *manifests(1))
    cluster.kubectl(serving, "rollout", "status", "deployment/unified", f"--namespace={NAMESPACE}", "--timeout=90s")
    (pod,) = get(serving, "pods", f"--namespace={NAMESPACE}")["items"]
    assert pod["spec"]["nodeName"] == "b300"
    (claim,) = get(serving, "resourceclaims", f"--namespace={NAMESPACE}")["items"]
    results = claim["status"]["allocation"]["devices"]["results"]
    assert {result["pool"] for result in results} == {"b300"}
    assert len({result["device"] for result in results}) == 8


@pytest.mark.parametrize(("gpu", "count"), [(B200, 8), (B300, 7)], ids=["eight B200", "seven B300"])
def test_a_node_with_other_or_fewer_gpus_is_refused_by_the_scheduler(
    gpu: Accelerator, count: int, serving: Layout
) -> None:
    given(serving, ("other", gpu, count))
    apply(serving, *manifests(1))
    assert "cannot allocate all claims" in refusal(serving)


def test_two_replicas_take_two_nodes_and_none_shares_one(serving: Layout) -> None:
    given(serving, ("first", B300, 8), ("second", B300, 8))
    apply(serving, *manifests(2))
    cluster.kubectl(serving, "rollout", "status", "deployment/unified", f"--namespace={NAMESPACE}", "--timeout=90s")
    pods = get(serving, "pods", f"--namespace={NAMESPACE}")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"first", "second"}


def test_a_new_image_is_rolled_out_on_the_only_node(serving: Layout) -> None:
    given(serving, ("only", B300, 8))
    template, deployment = manifests(1)
    apply(serving, template, deployment)
    cluster.kubectl(serving, "rollout", "status", "deployment/unified", f"--namespace={NAMESPACE}", "--timeout=90s")
    pod = deployment["spec"]["template"]["spec"]
    name = pod["containers"][0]["image"].partition("@")[0]
    newer = {**pod["containers"][0], "image": f"{name}@sha256:{'0' * 64}"}
    changed = {
        **deployment,
        "spec": {
            **deployment["spec"],
            "template": {**deployment["spec"]["template"], "spec": {**pod, "containers": [newer]}},
        },
    }
    apply(serving, changed)
    cluster.kubectl(serving, "rollout", "status", "deployment/unified", f"--namespace={NAMESPACE}", "--timeout=120s")
    (found,) = get(serving, "pods", f"--namespace={NAMESPACE}", "--field-selector=status.phase=Running")["items"]
    assert found["spec"]["containers"][0]["image"] == newer["image"]
