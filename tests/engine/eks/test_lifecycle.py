"""The EKS stack on the real engine, from nothing to nothing. The tests build on each other, in this order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.cluster import Profile
from tests.support.cluster import get, started
from tests.support.eks import RESERVATION, SERVED_NAME
from tests.support.eks_stack import OTHER_RESERVATION, WHY_NO_PROOF, Eks, block, eks
from tests.support.pulumi import Outcome
from tests.support.recipe import engine_container

OTHER_REVISION = "0" * 40


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Eks, Outcome]]:
    directory = tmp_path_factory.mktemp("eks")
    with started(directory / "cluster", profile=Profile.CONTROL_PLANE) as layout, eks(layout, directory) as made:
        yield made, made.stack.up().succeeded()


def pods(made: Eks, *where: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(made.layout, "pods", *(where or ("--all-namespaces",)))["items"]
    return found


def engines(made: Eks) -> list[dict[str, Any]]:
    return pods(
        made, "--namespace=serving", "--selector=llm-serving/engine=unified", "--field-selector=status.phase=Running"
    )


def touched(outcome: Outcome) -> set[tuple[str, str]]:
    """Operation and name of everything that was not left as it was."""
    return {(step.operation, step.name) for step in outcome.steps if step.operation not in {"same", "read", "refresh"}}


def names(outcome: Outcome) -> set[str]:
    return {name for _, name in touched(outcome)}


def test_up_from_nothing_has_every_pod_placed_by_the_scheduler(up: tuple[Eks, Outcome]) -> None:
    made, first = up
    assert first.changes["create"] > 150
    everywhere = pods(made)
    workloads = {pod["metadata"]["labels"].get("app.kubernetes.io/name", "engine") for pod in everywhere}
    assert {"engine", "router", "gateway", "prometheus", "staging", "hydration", "dcgm-exporter"} <= workloads
    assert [pod["metadata"]["name"] for pod in everywhere if not pod["spec"].get("nodeName")] == []


def test_the_engine_holds_all_eight_gpus_of_the_accelerator_node(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    (engine,) = engines(made)
    node = get(made.layout, "node", engine["spec"]["nodeName"])
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "p6-b300.48xlarge"
    (claim,) = get(made.layout, "resourceclaims", "--namespace=serving")["items"]
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 8


def test_the_stored_engine_is_the_recipes(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    (engine,) = engines(made)
    container = engine["spec"]["containers"][0]
    recipe = engine_container()
    assert container["image"] == recipe["image"]
    assert container["args"] == [
        flag.replace("$(MODELPLANE_SERVED_MODEL_NAME)", SERVED_NAME) for flag in recipe["args"]
    ]


def test_the_outputs_say_that_nothing_was_proved_and_why(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    outputs = made.stack.outputs()
    assert outputs["proof"] == {"result": "not run", "why": WHY_NO_PROOF}
    assert outputs["endpoint"].startswith("http://entrance")


def test_a_second_up_changes_nothing(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    assert made.stack.up("--expect-no-changes").succeeded().changes == {}


def test_a_refresh_finds_everything_as_it_was_made(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    assert made.stack.refresh("--expect-no-changes").succeeded().changes == {}


def test_a_flag_touches_the_engine_and_nothing_else(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    made.configure(engine={"flags": {"watchdog-timeout": 3600}})
    assert touched(made.stack.up().succeeded()) == {("update", "unified")}
    (engine,) = engines(made)
    assert "--watchdog-timeout=3600" in engine["spec"]["containers"][0]["args"]


def test_another_image_takes_the_place_of_the_old_one_on_the_same_node(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    before = engines(made)[0]["spec"]["nodeName"]
    image = f"lmsysorg/sglang:dev-kimi-k31-pro@sha256:{'1' * 64}"
    made.configure(engine={"image": image})
    outcome = made.stack.up().succeeded()
    assert touched(outcome) == {("update", "unified")}
    (engine,) = engines(made)
    assert engine["spec"]["containers"][0]["image"] == image
    assert engine["spec"]["nodeName"] == before


def test_another_revision_is_staged_and_copied_before_the_engine_changes(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    made.configure(model={"repo": "moonshotai/Kimi-K3.1-Pro", "revision": OTHER_REVISION, "served_name": SERVED_NAME})
    outcome = made.stack.up().succeeded()
    order = [step.name for step in outcome.steps if step.operation not in {"same", "read"}]
    assert order.index("staging") < order.index("staging-verify") < order.index("hydration") < order.index("unified")
    assert ("update", "hydration") in touched(outcome)
    assert not {name for name in names(outcome) if "accelerators" in name or name == "weights"}
    (engine,) = engines(made)
    assert f"--revision={OTHER_REVISION}" in engine["spec"]["containers"][0]["args"]


def test_a_second_node_is_a_second_replica_and_leaves_the_first_alone(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    made.configure()
    made.stack.up().succeeded()
    (before,) = engines(made)
    made.configure(nodes={"count": 2})
    outcome = made.stack.up().succeeded()
    assert ("update", "accelerators") in touched(outcome)
    assert not [step for step in outcome.steps if step.type.endswith("LaunchTemplate") and step.operation != "same"]
    both = engines(made)
    assert len({pod["spec"]["nodeName"] for pod in both}) == 2
    assert before["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in both}


def test_a_new_block_in_the_same_zone_is_a_new_version_of_the_template_and_no_second_group(
    up: tuple[Eks, Outcome],
) -> None:
    made, _ = up
    made.cloud.sell(block(), block(OTHER_RESERVATION))
    made.configure(nodes={"count": 2}, capacity_block={"reservation": OTHER_RESERVATION})
    outcome = made.stack.up().succeeded()
    kinds = {
        (step.operation, step.type.rpartition(":")[2])
        for step in outcome.steps
        if step.name == "accelerators" and step.operation != "same"
    }
    assert ("update", "LaunchTemplate") in kinds
    assert ("update", "NodeGroup") in kinds
    assert {operation for operation, _ in kinds} == {"update"}
    assert made.stack.outputs()["block"]["id"] == OTHER_RESERVATION


def test_destroy_leaves_the_bucket_and_the_block_and_nothing_else(up: tuple[Eks, Outcome]) -> None:
    made, _ = up
    bucket = made.stack.outputs()["bucket"]
    made.stack.destroy("--exclude-protected").succeeded()
    left = {resource["type"] for resource in made.stack.resources()}
    assert left <= {
        "pulumi:pulumi:Stack",
        "pulumi:providers:aws",
        "llm-serving:aws:WeightsBucket",
        "aws:s3/bucket:Bucket",
    }
    (kept,) = [resource for resource in made.stack.resources() if resource["type"] == "aws:s3/bucket:Bucket"]
    assert kept["outputs"]["bucket"] == bucket
    assert RESERVATION in (made.cloud.state / "capacity-blocks.json").read_text()
    assert get(made.layout, "nodes")["items"] == []
