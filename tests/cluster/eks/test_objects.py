"""Every Kubernetes object of the program, and every pod that its workloads make, judged by a real API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from catalog.artifacts import INFERENCE_EXTENSION_CRDS
from sandbox import cluster
from sandbox.cluster import Layout
from sandbox.images import make_bundle
from tests.support.accelerator_nodes import apply
from tests.support.eks import SCHEDULED
from tests.support.eks_program import program

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "scheduled block": {"block": SCHEDULED},
    "FSx": {"weights": {"store": "fsx"}},
    "EFS": {"weights": {"store": "efs"}},
    "device plugin": {"gpu_allocation": "device-plugin"},
    "API keys": {"gateway": {"auth": {"kind": "api-keys", "secret": {"name": "keys", "key": "keys"}}}},
    "managed Prometheus": {"monitoring": {"kind": "amp"}},
}
NOT_OBJECTS = ("providers", "helm.sh", "yaml:v2")
TEMPLATED = {"Deployment", "DaemonSet", "StatefulSet", "Job"}


@pytest.fixture(scope="module")
def ready(control_plane: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """Definitions and namespaces exist: the rest is only tried."""
    bundle = tmp_path_factory.mktemp("bundle")
    make_bundle(bundle)
    for definition in sorted((bundle / INFERENCE_EXTENSION_CRDS.directory).glob("*.yaml")):
        cluster.kubectl(control_plane, "apply", "--server-side", f"--filename={definition}")
    namespaces = [found for found in objects({}) if found["kind"] == "Namespace"]
    apply(control_plane, *namespaces)
    yield control_plane
    cluster.kubectl(control_plane, "delete", "namespace", *(found["metadata"]["name"] for found in namespaces))


def objects(changes: dict[str, Any]) -> list[dict[str, Any]]:
    recording, _ = program(**changes)
    return [
        dict(found.inputs)
        for found in recording.resources
        if found.custom and found.type.startswith("kubernetes:") and not any(part in found.type for part in NOT_OBJECTS)
    ]


def pods(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One pod of each workload, as its controller would make it."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **each["spec"]["template"]["metadata"],
                "name": f"{each['metadata']['name']}-pod",
                "namespace": each["metadata"]["namespace"],
            },
            "spec": each["spec"]["template"]["spec"],
        }
        for each in made
        if each["kind"] in TEMPLATED
    ]


def refused(layout: Layout, tried: list[dict[str, Any]]) -> str:
    """What the API server has against these objects; nothing is stored."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": tried})
    command = cluster.kubectl_command(
        layout,
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--force-conflicts",
        "--filename=-",
    )
    done = subprocess.run(command, input=listed, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_is_accepted(variant: str, ready: Layout) -> None:
    made = objects(VARIANTS[variant])
    assert len(made) > 30
    assert refused(ready, made) == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_pod_is_admitted_under_its_namespaces_security_profile(variant: str, ready: Layout) -> None:
    made = objects(VARIANTS[variant])
    accounts = [each for each in made if each["kind"] == "ServiceAccount"]
    apply(ready, *accounts)
    tried = pods(made)
    assert len(tried) >= 6
    assert refused(ready, tried) == ""
