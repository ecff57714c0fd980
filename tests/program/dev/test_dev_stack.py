"""The dev program under mocks: what is made, in which order, and that its parts agree with each other."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kubernetes.utils.quantity import parse_quantity

from catalog.artifacts import IMAGES
from planning.findings import ConfigurationError
from planning.settings import load, load_stack_file
from policies.pack import violations
from policies.pods import containers, pods
from policies.rule import Resource
from stacks.building import missing
from stacks.render import Registration, main, record, render

PROJECT = Path(__file__).parents[3]
MODEL = {"repo": "example/tiny-moe", "revision": "6" * 40, "served_name": "moonshotai/Kimi-K3.1-Pro"}
SERVING, WEIGHTS, LWS = "llm-serving", "llm-serving-weights", "lws-system"


def settings(**changes: Any) -> Any:
    return load({"target": "dev", "model": MODEL, **changes})


@cache
def program() -> tuple[Registration, ...]:
    return tuple(record(load_stack_file(PROJECT / "Pulumi.dev.yaml"), stack="dev"))


def one(kind: str, name: str, registered: tuple[Registration, ...] | None = None) -> Registration:
    (found,) = [each for each in registered or program() if each.kind == kind and each.name == name]
    return found


def needs(first: Registration, second: Registration) -> bool:
    """Whether `first` waits for `second`: itself, a parent of it, or something that it waits for does."""
    known = {each.urn: each for each in program()}
    seen: set[str] = set()
    waiting = [first.urn]
    while waiting:
        each = known.get(waiting.pop())
        if each is None or each.urn in seen:
            continue
        seen.add(each.urn)
        waiting += [*each.depends_on, each.parent]
    return second.urn in seen


def objects() -> list[Registration]:
    return [each for each in program() if each.is_resource and "metadata" in each.inputs]


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (("Job", "staging"), ("Deployment", "hub")),
        (("Job", "staging"), ("Deployment", "store")),
        (("Job", "staging-verify"), ("Job", "staging")),
        (("Deployment", "unified"), ("Job", "staging-verify")),
        (("LeaderWorkerSet", "prefill"), ("Job", "staging-verify")),
        (("LeaderWorkerSet", "prefill"), ("Chart", "lws")),
        (("LeaderWorkerSet", "decode"), ("Chart", "lws")),
        (("InferencePool", "unified-router"), ("ConfigGroup", "inference-extension")),
        (("Deployment", "unified-router"), ("Deployment", "unified")),
        (("Deployment", "unified-router"), ("RoleBinding", "unified-router")),
        (("Deployment", "disaggregated-router"), ("LeaderWorkerSet", "prefill")),
        (("Deployment", "disaggregated-router"), ("LeaderWorkerSet", "decode")),
        (("Job", "smoke-unified"), ("Service", "unified-router")),
        (("Job", "smoke-disaggregated"), ("Service", "disaggregated-router")),
    ],
)
def test_what_is_needed_is_there_first(later: tuple[str, str], earlier: tuple[str, str]) -> None:
    assert needs(one(*later), one(*earlier))
    assert not needs(one(*earlier), one(*later))


def test_no_pod_starts_before_the_restrictions_and_the_flows_are_in_force() -> None:
    policies = [
        each for each in program() if each.kind in {"NetworkPolicy", "ResourceQuota", "Namespace"} and each.is_resource
    ]
    workloads = [each for each in objects() if pods(each.inputs)]
    assert len(policies) > 20
    assert len(workloads) == 11
    for workload in workloads:
        assert [policy.name for policy in policies if not needs(workload, policy)] == []


def test_every_object_has_a_name_of_its_own_and_lies_in_a_namespace_of_ours() -> None:
    places = [
        (each.kind, each.inputs["metadata"].get("namespace"), each.inputs["metadata"]["name"]) for each in objects()
    ]
    assert len(places) == len(set(places))
    assert {namespace for kind, namespace, _ in places if kind != "Namespace"} == {SERVING, WEIGHTS, LWS}


def test_no_resource_violates_a_policy() -> None:
    assert violations([Resource(type=each.type, properties=each.inputs) for each in program()]) == []


def test_all_images_come_from_the_catalogue_and_all_of_them_from_the_mirror() -> None:
    used = {container["image"] for each in objects() for container in containers(each.inputs)}
    assert used == {f"mirror.sandbox.local/{row.reference}" for row in IMAGES.values()} & used
    assert len(used) == 6
    chart = one("Chart", "lws").inputs["values"]["image"]["manager"]
    assert f"{chart['repository']}:{chart['tag']}" == "mirror.sandbox.local/registry.k8s.io/lws/lws:v0.9.0"


def test_without_a_mirror_and_a_bundle_everything_has_its_public_address() -> None:
    registered = tuple(record(load_stack_file(PROJECT / "Pulumi.dev-own.yaml"), stack="dev-own"))
    used = {container["image"] for each in registered for container in containers(each.inputs)}
    assert used <= {row.reference for row in IMAGES.values()}
    chart = one("Chart", "lws", registered).inputs
    assert (chart["chart"], chart["version"]) == ("oci://registry.k8s.io/lws/charts/lws", "0.9.0")
    (crds,) = one("ConfigGroup", "inference-extension", registered).inputs["files"]
    assert crds.startswith(
        "https://github.com/kubernetes-sigs/gateway-api-inference-extension/releases/download/v1.5.0/"
    )


def quantity(workloads: list[Registration], resource: str, kind: str) -> float:
    """What all pods of these workloads ask for. Containers that run before others count where they ask for more."""
    total = 0.0
    for each in workloads:
        spec = each.inputs["spec"]
        group = spec.get("leaderWorkerTemplate")
        replicas = spec.get("replicas", 1)
        counts = [replicas, replicas * (group["size"] - 1)] if group else [replicas]
        for count, pod in zip(counts, pods(each.inputs), strict=True):
            asked = [float(parse_quantity(c["resources"].get(kind, {}).get(resource, 0))) for c in pod["containers"]]
            total += count * sum(asked)
    return total


def test_the_quota_holds_what_is_planned_and_little_more() -> None:
    hard = one("ResourceQuota", SERVING).inputs["spec"]["hard"]
    workloads = [each for each in objects() if pods(each.inputs) and each.inputs["metadata"]["namespace"] == SERVING]
    for name, resource, kind in (
        ("requests.cpu", "cpu", "requests"),
        ("requests.memory", "memory", "requests"),
        ("limits.memory", "memory", "limits"),
    ):
        wanted = quantity(workloads, resource, kind)
        assert wanted <= float(parse_quantity(hard[name])) <= 2.1 * wanted, name


def test_the_picker_and_the_engines_agree_on_blocks_context_and_cache() -> None:
    simulator = {"block_tokens": 128, "context_tokens": 131072, "cache_blocks": 777}
    registered = tuple(record(settings(simulator=simulator), stack="test"))
    config = json.loads(one("ConfigMap", "unified-router", registered).inputs["data"]["picker.json"])
    (producer,) = [plugin for plugin in config["plugins"] if plugin["type"] == "approx-prefix-cache-producer"]
    assert producer["parameters"] == {
        "autoTune": False,
        "blockSizeTokens": 128,
        "maxPrefixTokensToMatch": 131072,
        "lruCapacityPerServer": 777,
    }
    arguments = one("Deployment", "unified", registered).inputs["spec"]["template"]["spec"]["containers"][0]["args"]
    flags = dict(pairwise(arguments))
    assert (flags["--block-size"], flags["--max-model-len"], flags["--kv-cache-size"]) == ("128", "131072", "777")


def test_the_router_of_the_split_shape_knows_every_prefill_leader_and_every_decode_pod() -> None:
    shape = {"prefill_groups": 2, "prefill_pods": 3, "decode_groups": 2, "decode_pods": 2}
    registered = tuple(record(settings(disaggregated=shape), stack="test"))
    router = one("Deployment", "disaggregated-router", registered).inputs["spec"]["template"]["spec"]["containers"][0]
    addresses: dict[str, list[str]] = {"--prefill": [], "--decode": []}
    for flag, value in pairwise(router["args"]):
        if flag in addresses:
            addresses[flag].append(value)
    assert addresses == {
        "--prefill": ["http://prefill-0.prefill:8000", "http://prefill-1.prefill:8000"],
        "--decode": [
            "http://decode-0.decode:8000",
            "http://decode-0-1.decode:8000",
            "http://decode-1.decode:8000",
            "http://decode-1-1.decode:8000",
        ],
    }


def test_only_prefill_leaders_are_endpoints_and_every_decode_pod_is() -> None:
    endpoint = "llm-d.ai/inference-serving"
    for name, worker_is_endpoint in (("prefill", False), ("decode", True)):
        template = one("LeaderWorkerSet", name).inputs["spec"]["leaderWorkerTemplate"]
        assert template["leaderTemplate"]["metadata"]["labels"][endpoint] == "true"
        assert (endpoint in template["workerTemplate"]["metadata"]["labels"]) is worker_is_endpoint


def test_the_container_that_faces_callers_holds_no_token_of_the_api() -> None:
    pod = one("Deployment", "unified-router").inputs["spec"]["template"]["spec"]
    mounts = {c["name"]: [mount["name"] for mount in c["volumeMounts"]] for c in pod["containers"]}
    assert mounts == {"picker": ["config", "api-credentials"], "envoy": ["config"]}
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {**MODEL, "revision": "main"}}, "model.revision"),
        ({"simulator": {"block_tokens": 2048}}, "simulator.block_tokens"),
        ({"replicas": 3}, "replicas"),
        ({"unified": {"replicas": "two"}}, "unified.replicas"),
        ({"namespace": "Not_A_Name"}, "namespace"),
        ({"disaggregated": {"prefill_groups": 0}}, "disaggregated.prefill_groups"),
    ],
)
def test_input_that_can_t_be_meant_is_refused_by_its_name_with_a_remedy(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(**changes)
    (finding,) = caught.value.findings
    assert finding.what.startswith(said)
    assert finding.remedy


def test_a_missing_kubeconfig_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (finding,) = missing(settings(kubernetes={"kubeconfig": str(tmp_path / "none")}))
    assert finding.severity == "error"
    assert str(tmp_path / "none") in finding.line()
    (tmp_path / "some").write_text("")
    assert missing(settings(kubernetes={"kubeconfig": str(tmp_path / "some")})) == []


@pytest.mark.parametrize("stack", ["dev", "dev-own"])
def test_only_a_cluster_of_its_own_gives_up_what_is_there(stack: str) -> None:
    registered = record(load_stack_file(PROJECT / f"Pulumi.{stack}.yaml"), stack=stack)
    (provider,) = [each for each in registered if each.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["upsertExistingObjects"] == ("true" if stack == "dev" else "false")
    assert provider.inputs["clusterIdentifier"]


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(simulator={"block_tokens": 2048, "first_token_ms": -1}, unified={"replicas": 0})
    assert len(caught.value.findings) == 3


def test_a_rendering_is_the_same_every_time_and_names_every_object() -> None:
    first, second = (render(load_stack_file(PROJECT / "Pulumi.dev.yaml"), stack="dev") for _ in range(2))
    assert [(each.file, each.text) for each in first] == [(each.file, each.text) for each in second]
    assert len({each.file for each in first}) == len(first)
    assert "kubernetes/llm-serving/LeaderWorkerSet-prefill.yaml" in {each.file for each in first}


def test_render_refuses_a_stack_that_does_not_exist_and_a_directory_that_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(PROJECT)
    (tmp_path / "precious").write_text("mine")
    for arguments, said in (
        (["--stack", "nope", "--out", str(tmp_path / "out")], "there is no Pulumi.nope.yaml"),
        (["--stack", "dev", "--out", str(tmp_path)], "is not empty and no rendering"),
    ):
        monkeypatch.setattr("sys.argv", ["render", *arguments])
        assert main() == 2
        assert said in capsys.readouterr().err
    assert (tmp_path / "precious").read_text() == "mine"
