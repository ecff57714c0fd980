"""A capacity block's calendar and verdict."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from planning.block import BlockNeed, CapacityBlock, is_local_zone, judge, schedule
from planning.findings import Severity
from planning.parts import Range

START = datetime(2026, 12, 10, 11, 30, tzinfo=UTC)
BEFORE = Range(low=3600, high=5400)
NEED = BlockNeed(
    instance_type="p6-b300.48xlarge",
    nodes=1,
    zones=("us-west-2a", "us-west-2c"),
    region="us-west-2",
    service_seconds=Range(low=1200, high=7200),
    shared_store="nvme",
)


def block(**changes: object) -> CapacityBlock:
    facts = {
        "reservation": "cr-0123456789abcdef0",
        "state": "scheduled",
        "instance_type": "p6-b300.48xlarge",
        "availability_zone": "us-west-2c",
        "count": 1,
        "start": START,
        "end": START + timedelta(days=7),
        **changes,
    }
    return CapacityBlock.model_validate(facts)


def test_up_is_to_be_run_early_enough_for_staging_to_end_at_the_blocks_start():
    calendar = schedule(block(), NEED, before_block=BEFORE, now=START - timedelta(days=1))
    assert calendar.run_up_by == START - timedelta(seconds=5400)
    assert calendar.first_token_by == START + timedelta(minutes=5) + timedelta(hours=2)


def test_the_block_is_drained_before_eks_scales_it_down():
    # expected: EKS user guide: to zero forty minutes before the end; a block that ends 11:30 loses its nodes at 10:50
    calendar = schedule(block(), NEED, before_block=BEFORE, now=START)
    assert (calendar.end - calendar.scale_down_at) == timedelta(minutes=40)
    assert calendar.drain_at < calendar.scale_down_at
    assert calendar.scale_down_at.strftime("%H:%M") == "10:50"


def test_a_late_up_loses_the_time_that_staging_takes():
    early = schedule(block(), NEED, before_block=BEFORE, now=START - timedelta(days=1))
    late = schedule(block(), NEED, before_block=BEFORE, now=START)
    assert early.lost_hours.high == (5 / 60) + 2
    assert late.lost_hours.high == 1.5 + 2


def test_a_good_block_that_waits_is_only_noted():
    found = judge(block(), NEED, now=START - timedelta(days=1), before_block=BEFORE)
    assert [finding.severity for finding in found] == [Severity.NOTE]


def test_a_good_block_that_runs_is_not_remarked():
    assert judge(block(state="active"), NEED, now=START + timedelta(hours=1), before_block=BEFORE) == ()


def test_everything_that_is_wrong_is_told_at_once():
    bad = block(state="expired", instance_type="p5.48xlarge", count=1, availability_zone="us-west-2b")
    need = NEED.model_copy(update={"nodes": 3})
    rules = {finding.rule for finding in judge(bad, need, now=START, before_block=BEFORE)}
    assert {"block-state", "block-type", "block-count", "block-zone"} <= rules


def test_local_zones_are_told_from_availability_zones():
    zones = ("us-east-1a", "us-east-1-atl-2a", "us-gov-east-1b", "us-west-2-lax-1a")
    assert [is_local_zone(zone) for zone in zones] == [False, True, False, True]


@given(
    hours=st.integers(min_value=-200, max_value=200),
    days=st.integers(min_value=1, max_value=182),
    more=st.integers(min_value=1, max_value=200),
)
@settings(deadline=None, derandomize=True)
def test_a_longer_block_is_never_judged_worse(hours: int, days: int, more: int):
    now = START + timedelta(hours=hours)

    def errors(length: int) -> int:
        found = judge(block(end=START + timedelta(days=length)), NEED, now=now, before_block=BEFORE)
        return sum(finding.severity is Severity.ERROR for finding in found)

    assert errors(days + more) <= errors(days)
