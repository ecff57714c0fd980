"""The dev plan: addresses, arguments, limits and flows follow from the shapes, whatever they are."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planning.dev import DECODE, PREFILL, DevPlan, plan_dev, simulator_arguments
from planning.flows import Pods
from planning.settings import load
from planning.settings.dev import Dev, Simulator

SIZES = st.fixed_dictionaries(
    {name: st.integers(1, 16) for name in ("prefill_groups", "prefill_pods", "decode_groups", "decode_pods")}
)


def plan(**changes: Any) -> DevPlan:
    model = {"repo": "example/tiny-moe", "revision": "6" * 40}
    settings = load({"target": "dev", "model": model, **changes})
    assert isinstance(settings, Dev)
    return plan_dev(settings)


@given(SIZES)
def test_the_router_has_one_address_for_each_prefill_group_and_one_for_each_decode_pod(sizes: dict[str, int]) -> None:
    split = plan(disaggregated=sizes).split
    assert len(set(split.prefill)) == len(split.prefill) == sizes["prefill_groups"]
    assert len(set(split.decode)) == len(split.decode) == sizes["decode_groups"] * sizes["decode_pods"]
    # LeaderWorkerSet names pods <set>-<group> and <set>-<group>-<worker>, below a Service of the set's name
    # (lws v0.9.0, pkg/utils/pod; the llm-d sheet has it under LWS_LEADER_ADDRESS).
    for name, addresses in ((PREFILL, split.prefill), (DECODE, split.decode)):
        assert all(re.fullmatch(rf"http://{name}-\d+(-\d+)?\.{name}:8000", address) for address in addresses)


@given(SIZES, st.integers(1, 32))
def test_the_quota_has_room_for_every_pod_and_for_one_more_group_of_each_role(
    sizes: dict[str, int], replicas: int
) -> None:
    made = plan(disaggregated=sizes, unified={"replicas": replicas})
    workloads = (made.unified, made.prefill, made.decode)
    once_more = sum(each.pods + each.group.pods for each in workloads)
    assert made.quota.pods >= once_more + 2 + 2  # two routers, two checks
    assert made.quota.memory_mib >= sum((each.pods + each.group.pods) * each.memory_mib for each in workloads)


@given(st.integers(0, 600), st.integers(30, 3600))
def test_engines_may_take_the_time_that_they_say_they_need(load_seconds: int, ready_seconds: int) -> None:
    made = plan(simulator={"load_seconds": load_seconds}, ready_seconds=ready_seconds)
    startup = made.unified.probes.startup
    assert startup is not None
    assert startup.period_seconds * startup.failure_threshold >= load_seconds + 30
    assert made.unified.ready_seconds >= load_seconds + ready_seconds


@given(st.integers(1024, 2_000_000))
def test_a_prompt_as_long_as_the_context_is_not_too_long_a_request(context: int) -> None:
    arguments = simulator_arguments(Simulator(context_tokens=context), model="m")
    megabytes = int(arguments[arguments.index("--max-request-body-size-mb") + 1])
    assert 1 <= megabytes <= 512  # what the simulator takes (its --help)
    assert megabytes * 1024**2 >= min(512 * 1024**2, 7 * context)


def test_every_flow_is_between_pods_of_ours_and_named_once() -> None:
    made = plan(namespace="kimi")
    ends = [end for flow in made.flows for end in (flow.source, flow.target) if isinstance(end, Pods)]
    assert {end.namespace for end in ends} == {"kimi", "kimi-weights", "lws-system"}
    names = [flow.name for flow in made.flows]
    assert len(names) == len(set(names))


def test_the_default_is_the_guide_s_shape() -> None:
    made = plan()
    assert (made.prefill.group.replicas, made.prefill.group.pods) == (3, 2)
    assert (made.decode.group.replicas, made.decode.group.pods) == (1, 4)
