"""The GKE plans against the guide's text: flags, pools, tiers, router configuration, host memory."""

from __future__ import annotations

import json
import re

import pytest

from catalog.units import GIB
from planning.gke_gpu import plan_a4x
from planning.gke_tpu import plan_tpu
from planning.plan import Plan
from planning.settings import load
from tests.support.configs import NOW, values
from tests.support.seeds import BLOG, GUIDE, stated


def tpu(**changes: object) -> Plan:
    return plan_tpu(load(values("gke-tpu7x", changes)), now=NOW)  # type: ignore[arg-type]


def gpu(**changes: object) -> Plan:
    return plan_a4x(load(values("gke-a4x-max", changes)), now=NOW)  # type: ignore[arg-type]


def plugin(plan: Plan, kind: str) -> dict[str, object]:
    (found,) = [found.parameters for found in plan.router.picker.plugins if found.type == kind]
    return dict(found)


def test_the_host_tier_of_the_tpu_pool_is_the_guides_to_the_token():
    # fact: the HBM pool (measured); derived: pages, host tokens, the router's capacity, tokens of a replica
    hbm, host = tpu().memory.tiers
    assert hbm.tokens == stated(GUIDE, r"HBM KV pool holds ([\d,]+) tokens")
    assert hbm.basis == "measured"
    assert host.tokens == stated(GUIDE, r"\(([\d,]+) host tokens per rank\)")
    assert hbm.pages + host.pages == stated(GUIDE, r"lruCapacityPerServer: (\d+)")
    assert f"{(hbm.tokens + host.tokens) / 1e6:.2f}M" == re.search(r"([\d.]+M)-token/replica", GUIDE).group(1)  # type: ignore[union-attr]


def test_the_tpu_host_needs_the_eight_hundred_gib_of_the_guide():
    # facts: load peak (measured), pool (measured); derived: the host pools of eight ranks
    (host,) = tpu().memory.hosts
    assert host.total_gib == pytest.approx(stated(GUIDE, r"about (\d+) GiB of\s+allocatable host memory"), rel=0.01)
    assert host.fits


def test_the_tpu_router_is_configured_as_the_guide_says():
    planned = tpu()
    assert plugin(planned, "approx-prefix-cache-producer") == {
        "autoTune": False,
        "blockSizeTokens": stated(GUIDE, r"blockSizeTokens: (128) matches"),
        "maxPrefixTokensToMatch": stated(GUIDE, r"maxPrefixTokensToMatch: (\d+)"),
        "lruCapacityPerServer": stated(GUIDE, r"lruCapacityPerServer: (\d+)"),
    }
    assert plugin(planned, "prefix-cache-affinity-filter") == {
        "peakPrefillThroughput": stated(GUIDE, r"peakPrefillThroughput: (\d+)")
    }


def test_without_hicache_the_router_counts_the_device_pool_only():
    planned = tpu(**{"engine.flags.enable-hierarchical-cache": None})
    assert planned.router.lru_blocks == 4159


@pytest.mark.parametrize(
    "flag",
    ["--page-size 128", "--hicache-ratio 2", "--tp-size=32", "--ep-size=8", "--hicache-io-backend=raiden"],
)
def test_the_tpu_engine_has_the_flags_that_guide_and_blog_state(flag: str):
    name = flag.split()[0].split("=")[0]
    assert name in GUIDE + BLOG or "TP=32 × EP=8" in GUIDE
    assert flag.replace(" ", "=") in tpu().engine.arguments


def test_the_tpu_plan_makes_two_slices_of_four_hosts():
    planned = tpu()
    assert planned.pool.nodes == 8
    assert (planned.engine.group.replicas, planned.engine.group.pods) == (2, 4)
    assert planned.pool.nodes * planned.pool.accelerators_per_node == stated(GUIDE, r"(\d+) chips for the default 2")
    assert "tool-call" not in planned.smoke.checks
    assert "host-tier-correctness" in planned.smoke.checks


def guide_flags(line_start: str) -> list[str]:
    """The flags that the guide's table of manifests lists for one file, with their values."""
    (line,) = [line for line in GUIDE.splitlines() if line.startswith(line_start)]
    cells = re.findall(r"`(--[^`]*)`", line)
    words = cells[0]
    return re.findall(r"--[\w-]+(?: (?:'[^']*'|[^\s-][^\s]*))?", words)


@pytest.mark.parametrize(("role", "file"), [(0, "`prefill-lws.yaml`"), (1, "`decode-lws.yaml`")])
def test_both_vllm_roles_have_every_flag_of_the_guides_table(role: int, file: str):
    arguments = gpu().engines[role].arguments
    stated_flags = guide_flags(file)
    assert len(stated_flags) >= 10
    for flag in stated_flags:
        name, _, value = flag.partition(" ")
        assert (f"{name}={value.strip(chr(39))}" if value else name) in arguments


def test_the_shape_is_three_prefill_engines_and_one_decode_engine_on_ten_nodes():
    planned = gpu()
    prefill, decode = planned.engines
    assert planned.pool.nodes == stated(GUIDE, r"Topology \(3P1D\)\s+(\d+) nodes")
    assert planned.pool.nodes * planned.pool.accelerators_per_node == stated(
        GUIDE, r"10 nodes \((\d+)× NVIDIA GB300 GPUs\)"
    )
    assert (prefill.group.replicas, prefill.group.pods) == (3, 2)
    assert (decode.group.replicas, decode.group.pods) == (1, 4)


def test_the_gpu_router_has_the_engines_block_seed_and_event_port():
    planned = gpu()
    precise = plugin(planned, "precise-prefix-cache-producer")
    assert precise["tokenProcessorConfig"] == {"blockSizeTokens": 2048, "hashSeed": "42"}
    assert precise["kvEventsConfig"]["podDiscoveryConfig"]["socketPort"] == stated(GUIDE, r"ZMQ :(\d+)\)")  # type: ignore[index,call-overload]
    assert planned.router.target_ports == (8000, 8001, 8002, 8003)
    assert "8000..8003 -> 8200..8203" in GUIDE
    assert planned.engines[1].ports == (8200, 8201, 8202, 8203)
    assert all(engine.env["PYTHONHASHSEED"] == "42" for engine in planned.engines)


def test_the_gpu_routers_block_follows_the_engines_cache_format():
    changes = {f"{role}.flags.kv-cache-dtype": "fp8_ds_mla" for role in ("prefill", "decode")}
    planned = gpu(**changes)
    # 814,080 B of state a layer ÷ (656 + 68) B a token = 1,125 tokens, in multiples of 128
    assert planned.router.block_tokens == planned.engines[0].block_tokens == 1152


def test_the_guides_segments_fit_a_node_and_its_donors_do_not():
    # facts: 160 GB a worker, 500 GB a donor (guide), 960 GB a node (operators' notes); derived: the sums
    segment, donor = (
        stated(GUIDE, r"global_segment_size=(\d+)GB/worker"),
        stated(GUIDE, r"(\d+) GB/node mooncake-donor"),
    )
    plain, with_donors = gpu(), gpu(**{"tier.donors": True})
    host = with_donors.memory.hosts[0]
    sizes = {share.what.split(",")[0]: share.gib for share in host.shares}
    assert sizes["Mooncake segments"] == 4 * segment
    assert sizes["Mooncake donor"] == donor
    assert plain.memory.hosts[0].fits
    assert not host.fits
    assert host.usable_gib * GIB == 960e9


def test_decode_state_is_one_slot_a_sequence_with_replayssm_and_six_without():
    # expected: engines' reference sheet §6: 32 sequences at TP1 are 13.4 GiB against 80.4 GiB
    with_it = gpu().memory.ranks[1]
    without = gpu(**{"decode.flags.use-replayssm": None}).memory.ranks[1]
    assert (with_it.state_gib, without.state_gib) == (pytest.approx(13.4, abs=0.05), pytest.approx(80.4, abs=0.1))


def test_the_store_on_decode_gives_capacity_only():
    decode = gpu().engines[1]
    (config,) = [json.loads(flag.partition("=")[2]) for flag in decode.arguments if "kv-transfer-config" in flag]
    store = config["kv_connector_extra_config"]["connectors"][1]
    assert store["kv_role"] == "kv_consumer"
    assert store["kv_connector_extra_config"] == {"enable_lookup": False}


def test_reading_the_volume_takes_as_long_as_its_throughput_allows():
    # expected: gcp reference sheet C2: four engines 15.5 min, two slices 7.8 min, all eight hosts 31 min at 6,400 MiB/s
    minutes = {
        plan.target: next(step.seconds for step in plan.startup.steps if step.name == "loading the weights").scaled(
            1 / 60
        )
        for plan in (gpu(), tpu())
    }
    assert minutes["gke-a4x-max"].low == pytest.approx(15.5, abs=0.1)
    assert minutes["gke-tpu7x"].low == pytest.approx(7.8, abs=0.1)
    assert minutes["gke-tpu7x"].high == pytest.approx(31, abs=0.1)


def test_a_volume_that_waits_for_its_first_consumer_costs_accelerator_hours():
    early, late = tpu(), tpu(**{"weights.binding": "first-consumer"})
    assert late.startup.accelerated_seconds.low > early.startup.accelerated_seconds.low + 3600


@pytest.mark.parametrize("tier", [{"kind": "mooncake"}, {"kind": "native", "gib_per_rank": 150}])
def test_a_gpu_pod_has_room_for_its_shares_and_leaves_the_node_some(tier: dict[str, object]):
    planned = gpu(tier=tier)
    for engine, host in zip(planned.engines, planned.memory.hosts, strict=True):
        assert host.total_gib < engine.memory_gib < host.usable_gib
