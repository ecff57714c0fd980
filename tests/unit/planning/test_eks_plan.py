"""The EKS plan: the recipe's engine word for word, limits out of the estimates, sizes that fit the node."""

from __future__ import annotations

import pytest

from catalog.hardware import P6_B300
from planning.eks import hydrate_and_read
from planning.plan import Plan
from planning.settings import load
from planning.settings.eks import EksB300
from planning.startup import startup_budget
from tests.support.configs import NOW, values
from tests.support.recipe import device_selector, engine_container, manifest


def eks(**changes: object) -> Plan:
    from planning.plan import plan

    return plan(load(values("eks-b300", changes)), now=NOW)  # type: ignore[arg-type]


def test_the_engine_runs_the_recipes_image_command_and_flags_in_its_order():
    container = engine_container()
    engine = eks().engine
    assert engine.image == container["image"]
    assert list(engine.command) == container["command"]
    given = [flag.replace("$(MODELPLANE_SERVED_MODEL_NAME)", engine.served_name) for flag in container["args"]]
    assert list(engine.arguments) == given


def test_the_claim_has_the_recipes_selector_and_all_eight_gpus():
    claim = eks().engine.claim
    assert " ".join(claim.selector.split()) == " ".join(device_selector().split())
    assert claim.count == manifest("inference-class.yaml")["spec"]["devices"][0]["count"]
    assert eks(gpu_allocation="device-plugin").engine.claim.selector == ""


def test_the_engine_says_the_name_that_the_router_routes():
    planned = eks(**{"model.served_name": "ml-team/kimi-k3-1-pro"})
    assert planned.engine.served_name == planned.router.model == planned.smoke.model == "ml-team/kimi-k3-1-pro"
    assert "--served-model-name=ml-team/kimi-k3-1-pro" in planned.engine.arguments


def test_another_revision_is_staged_and_served():
    revision = "0" * 40
    planned = eks(**{"model.revision": revision})
    assert planned.weights.revision == revision
    assert planned.weights.prefix.endswith(revision)
    assert f"--revision={revision}" in planned.engine.arguments


def test_a_flag_of_the_user_replaces_the_recipes_where_it_stands():
    before, after = eks().engine.arguments, eks(**{"engine.flags.max-running-requests": 32}).engine.arguments
    position = before.index("--max-running-requests=48")
    assert after[position] == "--max-running-requests=32"
    assert [flag for flag in after if flag not in before] == ["--max-running-requests=32"]


def test_an_alias_can_not_set_a_flag_twice():
    arguments = eks(**{"engine.flags.tensor-parallel-size": 8}).engine.arguments
    assert [flag for flag in arguments if "parallel" in flag or "tp-size" in flag] == ["--tp-size=8"]


def test_the_router_follows_the_engine():
    planned = eks(**{"engine.flags.context-length": 262144})
    producer = planned.router.picker.plugins[0].parameters
    assert producer["blockSizeTokens"] == planned.engine.block_tokens == 64
    assert producer["maxPrefixTokensToMatch"] == 262144
    assert producer["lruCapacityPerServer"] == int(planned.memory.ranks[0].pool_tokens.low) // 64
    assert planned.router.target_ports == (planned.engine.port,)
    assert planned.router.match_labels.items() <= planned.engine.labels.items()


def test_each_router_gets_the_header_that_its_release_accepts():
    headers = {
        name: eks(router=name).router.picker.document()["apiVersion"] for name in ("llm-d", "inference-extension")
    }
    assert headers == {
        "llm-d": "llm-d.ai/v1alpha1",
        "inference-extension": "inference.networking.x-k8s.io/v1alpha1",
    }


def test_the_router_reads_sglangs_metric_names():
    # the recipe: llm-d.ai/engine-type: sglang, "the picker reads SGLang's metric names"
    labels = manifest("model-deployment.yaml")["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"][
        "metadata"
    ]["labels"]
    assert labels.items() <= eks().engine.labels.items()


def test_the_pod_fits_the_node():
    engine = eks().engine
    assert engine.memory_gib * 2**30 < P6_B300.usable_bytes
    assert engine.cpu_millicores < (P6_B300.allocatable_millicpu or 0)
    assert engine.shm_gib < engine.memory_gib


@pytest.mark.parametrize("store", ["nvme", "fsx", "efs"])
def test_the_startup_probe_gives_more_than_the_slowest_estimate_and_than_the_sources_ask_for(store: str):
    planned = eks(**{"weights.store": store})
    probe = planned.engine.probes.startup
    assert probe is not None
    given = probe.period_seconds * probe.failure_threshold
    steps = {step.name: step.seconds for step in planned.startup.steps}
    read, compilation = steps["loading the weights"], steps["compilation and graphs"]
    assert given == planned.startup.limits.startup_seconds
    assert given >= read.high + compilation.high
    assert given >= 2 * read.high + 20 * 60
    assert given >= 90 * 60
    assert planned.engine.ready_seconds > given


def test_sglangs_probes_wait_longer_than_its_own_health_check():
    # sglang: /health generates a token and gives up after 20 s itself
    for probe in (eks().engine.probes.startup, eks().engine.probes.liveness):
        assert probe is not None
        assert probe.timeout_seconds > 20


def test_a_slower_store_lengthens_the_probe():
    assert (
        eks(**{"weights.store": "efs"}).startup.limits.startup_seconds
        > eks(**{"weights.store": "nvme"}).startup.limits.startup_seconds
    )


def test_fsx_and_efs_load_as_fast_as_the_reference_computes():
    # expected: aws reference sheet §5: P2 4,800 GiB at 1000: 5.5 min by disk, at 125: 44 min; EFS ceiling 16 min
    def minutes(**changes: object) -> tuple[float, float]:
        settings = load(values("eks-b300", changes))
        assert isinstance(settings, EksB300)
        read = hydrate_and_read(settings)[1]
        return read.low / 60, read.high / 60

    assert minutes(**{"weights.store": "fsx", "weights.mbps_per_tib": 1000})[1] == pytest.approx(5.5, abs=0.1)
    assert minutes(**{"weights.store": "fsx", "weights.mbps_per_tib": 125})[1] == pytest.approx(44, abs=0.5)
    assert minutes(**{"weights.store": "efs"})[0] == pytest.approx(16, abs=0.3)


def test_one_node_needs_no_efa_and_two_nodes_get_sixteen_devices():
    facts = {"capacity_block.facts.count": 2, "nodes.count": 2}
    assert eks().pool.efa_cards == ()
    assert eks(**facts).pool.efa_cards == tuple(range(1, 17))
    assert eks(**facts).engine.group.replicas == 2


def test_a_startup_budget_is_in_steps_of_ten_minutes():
    from planning.parts import Range

    budget = startup_budget(read_seconds=Range(low=60, high=540), compile_seconds=Range(low=600, high=4500))
    assert budget % 600 == 0


def test_the_block_of_the_settings_is_used_where_aws_is_not_asked():
    planned = eks()
    assert planned.block is not None
    assert planned.block.availability_zone == "us-west-2c"
    assert planned.schedule is not None
    without = eks(**{"capacity_block.facts": "(missing)"})
    assert without.block is None
    assert without.schedule is None


def test_even_the_fastest_hub_leaves_every_limit_ten_minutes():
    limits = eks(**{"weights.staging.hub_mbps": 100_000}).startup.limits
    for name in ("stage_seconds", "hydrate_seconds", "engine_ready_seconds", "router_ready_seconds"):
        assert getattr(limits, name) >= 600
