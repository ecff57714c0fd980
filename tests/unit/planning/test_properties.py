"""What must hold for every configuration, not only for those that somebody thought of."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.hardware import B200, B300, Accelerator
from catalog.models import KIMI_K31_PRO, Model
from catalog.recipes import SGLANG_B300
from planning.findings import ConfigurationError, Finding
from planning.flags import merge
from planning.parts import Range
from planning.plan import Plan, plan
from planning.settings import decode, load
from planning.sglang_memory import rank_memory
from planning.startup import read, startup_budget
from planning.weights import checkpoint, derive
from tests.support.configs import FILLED, NOW, values

STACKS = sorted(FILLED)


def bigger(model: Model, factor: int) -> Model:
    """The same model with more experts' width."""
    moe = dataclasses.replace(model.moe, intermediate=model.moe.intermediate * factor)
    return dataclasses.replace(model, moe=moe, checkpoint_gib=0)


@given(
    tp=st.sampled_from([8, 16, 32]),
    fraction=st.floats(min_value=0.5, max_value=0.97),
    context=st.integers(min_value=4096, max_value=1_048_576),
    running=st.integers(min_value=1, max_value=256),
    factor=st.integers(min_value=2, max_value=4),
    accelerator=st.sampled_from([B200, B300]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_bigger_model_never_fits_where_a_smaller_does_not(
    tp: int, fraction: float, context: int, running: int, factor: int, accelerator: Accelerator
):
    changes = {
        "tp-size": tp,
        "dcp-size": 8,
        "mem-fraction-static": fraction,
        "context-length": context,
        "max-running-requests": running,
    }
    flags = merge(SGLANG_B300, served_name="x", changes=changes)
    small = rank_memory(KIMI_K31_PRO, accelerator, flags)
    large = rank_memory(bigger(KIMI_K31_PRO, factor), accelerator, flags)
    assert large.pool_tokens.low <= small.pool_tokens.low
    assert not (large.fits and not small.fits)


@given(fraction=st.floats(min_value=0.3, max_value=0.9), more=st.floats(min_value=0, max_value=0.07))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_larger_memory_fraction_never_makes_the_pool_smaller(fraction: float, more: float):
    def tokens(share: float) -> float:
        flags = merge(SGLANG_B300, served_name="x", changes={"mem-fraction-static": share})
        return rank_memory(KIMI_K31_PRO, B300, flags).pool_tokens.low

    assert tokens(fraction + more) >= tokens(fraction)


@given(
    mbps=st.floats(min_value=1, max_value=1000),
    faster=st.floats(min_value=1, max_value=100),
    stack=st.sampled_from(STACKS),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_more_bandwidth_from_the_hub_never_lengthens_the_start(mbps: float, faster: float, stack: str):
    def first_token(rate: float) -> Range:
        return plan(load(values(stack, {"weights.staging.hub_mbps": rate})), now=NOW).startup.first_token_seconds  # type: ignore[arg-type]

    slow, fast = first_token(mbps), first_token(mbps * faster)
    assert fast.low <= slow.low + 1e-6
    assert fast.high <= slow.high + 1e-6


@given(throughput=st.integers(min_value=400, max_value=200_000), more=st.integers(min_value=1, max_value=100_000))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_more_throughput_of_the_volume_never_lengthens_the_start(throughput: int, more: int):
    def seconds(rate: int) -> tuple[float, int]:
        found = plan(load(values("gke-tpu7x", {"weights.throughput_mibps": rate})), now=NOW).startup  # type: ignore[arg-type]
        return found.accelerated_seconds.high, found.limits.startup_seconds

    assert seconds(throughput + more) <= seconds(throughput)


@given(
    read_high=st.floats(min_value=0, max_value=1e5),
    compile_high=st.floats(min_value=0, max_value=1e5),
    more=st.floats(min_value=0, max_value=1e4),
)
@settings(deadline=None, derandomize=True)
def test_a_budget_covers_its_estimate_and_grows_with_it(read_high: float, compile_high: float, more: float):
    def budget(slower: float) -> int:
        return startup_budget(
            read_seconds=Range(low=0, high=read_high + slower), compile_seconds=Range(low=0, high=compile_high)
        )

    assert budget(0) >= read_high + compile_high
    assert budget(more) >= budget(0)


@given(data=st.data())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_order_of_keys_never_matters(data: st.DataObject):
    stack = data.draw(st.sampled_from(STACKS))
    shuffled = _shuffled(values(stack), random.Random(data.draw(st.integers())))
    assert plan(load(shuffled), now=NOW) == plan(load(values(stack)), now=NOW)  # type: ignore[arg-type]


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return value


@pytest.mark.parametrize("stack", STACKS)
def test_a_plan_is_the_same_after_a_trip_through_json(stack: str):
    planned = plan(load(values(stack)), now=NOW)  # type: ignore[arg-type]
    assert Plan.model_validate_json(planned.model_dump_json()) == planned


def findings(settings_of: Callable[[], Any]) -> tuple[Finding, ...]:
    """What is said about settings, by schema or plan; every other exception is a traceback and fails the test."""
    try:
        return plan(settings_of(), now=NOW).findings
    except ConfigurationError as error:
        return error.findings


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(stack=st.sampled_from(STACKS), data=st.data(), junk=JUNK)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_value_anywhere_ends_in_a_traceback(stack: str, data: st.DataObject, junk: Any):
    found = values(stack)
    place = found
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key] or data.draw(st.booleans()):
            place[key] = junk
            break
        place = place[key]
    told = findings(lambda: load(found))
    assert all("\n" not in finding.line() for finding in told)


FLAG_VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
)


@given(
    names=st.lists(
        st.sampled_from([name for name, _ in SGLANG_B300.flags] + ["page-size", "nnodes", "pp-size"]), max_size=4
    ),
    data=st.data(),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_flag_value_ends_in_a_traceback(names: list[str], data: st.DataObject):
    flags = {name: data.draw(FLAG_VALUES) for name in names}
    findings(lambda: load(values("eks-b300", {"engine.flags": flags})))


@given(raw=st.dictionaries(st.text(max_size=12), st.text(max_size=20), max_size=5))
@settings(deadline=None, derandomize=True)
def test_pulumis_config_map_never_ends_in_a_traceback(raw: dict[str, str]):
    assert findings(lambda: load(decode(raw)))


def test_the_unexplained_part_of_the_checkpoint_is_small():
    rest = checkpoint(KIMI_K31_PRO).other
    assert 0 <= rest <= 0.002 * derive(KIMI_K31_PRO).total


@given(
    size=st.floats(min_value=1, max_value=1e13),
    readers=st.integers(min_value=1, max_value=64),
)
@settings(deadline=None, derandomize=True)
def test_readers_share_one_store_and_not_their_own_disks(size: float, readers: int):
    from catalog.storage import NVME_READ, hyperdisk_ml

    assert read(size, NVME_READ, readers=readers) == read(size, NVME_READ)
    assert read(size, hyperdisk_ml(6400), readers=readers).high == pytest.approx(
        readers * read(size, hyperdisk_ml(6400)).high
    )
