"""The SGLang deployment, as the API server would be asked to make it; expected values are read from the recipe's text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import snapshot_download

from components.serving.sglang import (
    NodeDisk,
    Sglang,
    SglangArgs,
    SharedVolume,
    Weights,
    image_key,
)
from tests.support.eks import SERVED_NAME, planned
from tests.support.recipe import device_selector, engine_container, manifest
from tests.support.recorder import Recording, record

CACHE = manifest("model-cache.yaml")["spec"]["huggingFace"]
WEIGHTS = Weights(
    store=NodeDisk(mount="/mnt/k8s-disks/0"), directory="weights/r", repo=CACHE["repo"], revision=CACHE["revision"]
)


def args(
    *, weights: Weights = WEIGHTS, nodes_exist: bool = True, gates: tuple[dict[str, Any], ...] = (), **changes: Any
) -> SglangArgs:
    workload = planned(**changes).engine
    return SglangArgs(
        workload=workload,
        namespace="ml-team",
        image=workload.image,
        node_selector={"llm-serving/pool": "accelerators"},
        node_disk="/mnt/k8s-disks/0",
        weights=weights,
        gates=gates,
        nodes_exist=nodes_exist,
    )


def engine(**changes: Any) -> Recording:
    given = args(**changes)
    return record(lambda: (Sglang("kimi", args=given), None)[1])


def pod(**changes: Any) -> dict[str, Any]:
    return engine(**changes).one("apps/v1:Deployment").inputs["spec"]["template"]["spec"]


def variables(spec: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}


def test_the_claim_asks_for_exactly_the_recipes_devices() -> None:
    (request,) = engine().one("ResourceClaimTemplate").inputs["spec"]["spec"]["devices"]["requests"]
    (device,) = manifest("inference-class.yaml")["spec"]["devices"]
    assert request["exactly"]["deviceClassName"] == device["deviceClassName"]
    assert (request["exactly"]["allocationMode"], request["exactly"]["count"]) == ("ExactCount", device["count"])
    assert request["exactly"]["selectors"] == [{"cel": {"expression": device_selector()}}]


def test_the_pod_uses_the_claim_and_asks_for_no_extended_resource() -> None:
    spec = pod()
    assert spec["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": "kimi-gpus"}]
    resources = spec["containers"][0]["resources"]
    assert resources["claims"] == [{"name": "gpus"}]
    assert not any("nvidia" in name for part in ("requests", "limits") for name in resources[part])


def test_image_command_and_flags_are_the_recipes() -> None:
    container = pod()["containers"][0]
    recipe = engine_container()
    assert container["image"] == recipe["image"]
    assert container["command"] == recipe["command"]
    assert container["args"] == [
        flag.replace("$(MODELPLANE_SERVED_MODEL_NAME)", SERVED_NAME) for flag in recipe["args"]
    ]


def test_an_offline_hub_client_finds_the_mounted_copy_under_the_recipes_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = Weights(
        store=NodeDisk(mount="/mnt/k8s-disks/0"),
        directory="weights/r",
        repo=CACHE["repo"],
        revision=CACHE["revision"],
        cache=str(tmp_path),
    )
    place = Path(weights.mount_path)
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = snapshot_download(CACHE["repo"], revision=CACHE["revision"], cache_dir=tmp_path, local_files_only=True)
    assert Path(found) == place


def test_the_engine_is_offline_and_looks_for_weights_where_the_recipe_mounts_them() -> None:
    spec = pod()
    assert variables(spec)["HF_HUB_OFFLINE"] == "1"
    assert variables(spec)["HF_HUB_CACHE"] == "/mnt/models"
    mount = next(mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] == "weights")
    assert mount["mountPath"].startswith("/mnt/models/")
    assert mount["readOnly"] is True


def test_no_token_reaches_the_engine() -> None:
    spec = pod()
    assert spec["automountServiceAccountToken"] is False
    assert not [name for name in variables(spec) if "TOKEN" in name]


def test_compiled_kernels_live_on_the_nodes_disks_under_the_digest_of_the_image_that_built_them() -> None:
    spec = pod()
    mount = next(mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] == "caches")
    digest = engine_container()["image"].partition("@sha256:")[2]
    assert digest.startswith(mount["subPath"].removeprefix("caches/"))
    assert not mount.get("readOnly")
    places = [
        value
        for name, value in variables(spec).items()
        if ("CACHE" in name and name != "HF_HUB_CACHE") or "WORKSPACE" in name
    ]
    assert len(places) >= 9
    assert all(value.startswith(mount["mountPath"]) for value in places)


def test_an_image_without_a_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="no digest"):
        image_key("lmsysorg/sglang:dev-kimi-k31-pro")


@pytest.mark.parametrize("volume", ["weights", "caches"])
def test_a_node_without_the_disk_array_refuses_the_pod_instead_of_filling_its_root_volume(volume: str) -> None:
    found = next(entry for entry in pod()["volumes"] if entry["name"] == volume)
    assert found["hostPath"] == {"path": "/mnt/k8s-disks/0", "type": "Directory"}


def test_shared_weights_come_by_a_read_only_claim() -> None:
    weights = Weights(store=SharedVolume(claim="kimi"), directory="r", repo=CACHE["repo"], revision=CACHE["revision"])
    found = next(entry for entry in pod(weights=weights)["volumes"] if entry["name"] == "weights")
    assert found["persistentVolumeClaim"] == {"claimName": "kimi", "readOnly": True}


def test_shared_memory_is_sized_and_the_hosts_namespaces_stay_closed() -> None:
    spec = pod()
    shm = next(entry for entry in spec["volumes"] if entry["name"] == "shm")
    assert shm["emptyDir"]["medium"] == "Memory"
    assert int(shm["emptyDir"]["sizeLimit"].removesuffix("Gi")) > 0
    assert not [key for key in ("hostIPC", "hostPID", "hostNetwork") if spec.get(key)]


def test_a_rollout_needs_no_spare_node() -> None:
    strategy = engine(nodes={"count": 2}).one("apps/v1:Deployment").inputs["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_one_replica_at_most_is_disturbed_at_a_time() -> None:
    assert engine().one("PodDisruptionBudget").inputs["spec"]["maxUnavailable"] == 1


def test_the_pod_waits_for_running_requests_after_it_left_the_routers_list() -> None:
    spec = pod()
    drain = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert drain > 0
    assert spec["terminationGracePeriodSeconds"] >= 300 + drain


def test_the_pod_tolerates_the_accelerators_taint_and_runs_nowhere_else() -> None:
    spec = pod()
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["nodeSelector"] == {"llm-serving/pool": "accelerators"}


def test_while_the_block_has_not_started_the_deployment_is_not_waited_for() -> None:
    waiting = engine(nodes_exist=False).one("apps/v1:Deployment").inputs
    assert waiting["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert "annotations" not in engine().one("apps/v1:Deployment").inputs["metadata"]


def test_waiting_or_not_leaves_the_pods_as_they_are() -> None:
    before = engine(nodes_exist=False).one("apps/v1:Deployment").inputs["spec"]["template"]
    assert engine().one("apps/v1:Deployment").inputs["spec"]["template"] == before


def test_with_the_device_plugin_the_pod_asks_for_a_number() -> None:
    recording = engine(gpu_allocation="device-plugin")
    spec = recording.one("apps/v1:Deployment").inputs["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "resourceClaims" not in spec
    assert not recording.of("ResourceClaimTemplate")


def test_the_start_up_probe_allows_a_first_compilation_of_ninety_minutes() -> None:
    probe = pod()["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 90 * 60


def test_liveness_gives_a_busy_engine_longer_than_its_own_health_check_takes() -> None:
    assert pod()["containers"][0]["livenessProbe"]["timeoutSeconds"] > 20


def test_more_nodes_are_more_replicas() -> None:
    assert engine(nodes={"count": 2}).one("apps/v1:Deployment").inputs["spec"]["replicas"] == 2
