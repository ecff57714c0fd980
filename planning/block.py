"""A capacity block, judged: can it be used, is it where the cluster is, and does it last until the engines serve?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from planning.findings import Finding, Severity
from planning.parts import Part, Range

USABLE_STATES = ("scheduled", "active")
SCALE_UP_AFTER_START = timedelta(minutes=5)
"""Instances launch only once the block is active; a little later is safe."""
DRAIN_BEFORE_END = timedelta(minutes=60)
"""Twenty minutes before EKS itself scales the group down."""
SCALE_DOWN_BEFORE_END = timedelta(minutes=40)
"""EKS scales the node group to zero (user guide, capacity-blocks-mng); EC2 ends the instances ten minutes later."""
SOURCE = "EC2 user guide, Capacity Blocks; EKS user guide, capacity-blocks-mng"


class CapacityBlock(Part):
    """A capacity block as AWS describes it."""

    reservation: str
    state: str
    instance_type: str
    availability_zone: str
    count: int
    start: datetime
    end: datetime


class BlockNeed(Part):
    """What the environment asks of the block. service_seconds: from running instances to the first token."""

    instance_type: str
    nodes: int
    zones: tuple[str, ...]
    region: str
    service_seconds: Range
    shared_store: str


class Schedule(Part):
    """When things happen. run_up_by: `up` should be started by then for the weights to be staged when the block starts.
    raise_at: the node group is raised. first_token_from, first_token_by: if `up` starts now. drain_at, scale_down_at: before the end. lost_hours, lost_share: of the block, until
    the first token."""

    start: datetime
    end: datetime
    run_up_by: datetime
    raise_at: datetime
    first_token_from: datetime
    first_token_by: datetime
    drain_at: datetime
    scale_down_at: datetime
    lost_hours: Range
    lost_share: Range
    serving_hours: float


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _finding(rule: str, severity: Severity, what: str, value: str, why: str, remedy: str) -> Finding:
    return Finding(
        rule=f"block-{rule}", severity=severity, what=what, value=value, why=why, remedy=remedy, source=SOURCE
    )


def service_start(block: CapacityBlock, now: datetime) -> datetime:
    """When instances can be running at the earliest: now, or shortly after the block's start."""
    return max(now, block.start + SCALE_UP_AFTER_START)


def schedule(block: CapacityBlock, need: BlockNeed, *, before_block: Range, now: datetime) -> Schedule:
    """The block's calendar. before_block: seconds of `up` that need no accelerators, staging among them."""
    start = service_start(block, now)
    first = _later(start, now, before_block.low, need.service_seconds.low)
    last = _later(start, now, before_block.high, need.service_seconds.high)
    length = (block.end - block.start).total_seconds()
    lost = Range(low=(first - block.start).total_seconds(), high=(last - block.start).total_seconds())
    drain_at = block.end - DRAIN_BEFORE_END
    return Schedule(
        start=block.start,
        end=block.end,
        run_up_by=block.start - timedelta(seconds=before_block.high),
        raise_at=block.start + SCALE_UP_AFTER_START,
        first_token_from=first,
        first_token_by=last,
        drain_at=drain_at,
        scale_down_at=block.end - SCALE_DOWN_BEFORE_END,
        lost_hours=lost.scaled(1 / 3600),
        lost_share=Range(low=min(1.0, lost.low / length), high=min(1.0, lost.high / length)),
        serving_hours=max(0.0, (drain_at - last).total_seconds() / 3600),
    )


def _later(start: datetime, now: datetime, before: float, service: float) -> datetime:
    """The first token: the block must run, and what comes before accelerators must be done."""
    return max(start, now + timedelta(seconds=before)) + timedelta(seconds=service)


def judge(block: CapacityBlock, need: BlockNeed, *, now: datetime, before_block: Range) -> tuple[Finding, ...]:
    """Everything that is wrong with using this block now for this need; empty when nothing is."""
    found = [*_state(block, now), *_size(block, need), *_place(block, need)]
    if now < block.end:
        found += _time(block, need, now, before_block)
    return tuple(found)


def unjudged(reservation: str) -> Finding:
    """What is said when nobody has asked AWS about the block yet."""
    return _finding(
        "unjudged",
        Severity.NOTE,
        "the capacity block was not judged",
        reservation,
        "this plan was made without asking AWS: state, zone, size and end are not known",
        "Copy them into capacity_block.facts, or run `pulumi preview`, which asks",
    )


def _state(block: CapacityBlock, now: datetime) -> list[Finding]:
    found = []
    if block.state not in USABLE_STATES:
        found.append(
            _finding(
                "state",
                Severity.ERROR,
                f"the capacity block {block.reservation} can't be used",
                block.state,
                "only a scheduled or active block gives instances",
                "Take another block, or wait for the payment if it is pending",
            )
        )
    if now >= block.end:
        found.append(
            _finding(
                "over",
                Severity.ERROR,
                f"the capacity block {block.reservation} is over",
                _text(block.end),
                "its instances are gone",
                "Buy or extend one: `python -m components.aws.buy_block`",
            )
        )
    return found


def _size(block: CapacityBlock, need: BlockNeed) -> list[Finding]:
    found = []
    if block.instance_type != need.instance_type:
        found.append(
            _finding(
                "type",
                Severity.ERROR,
                "the capacity block holds another instance type",
                block.instance_type,
                f"the plan is for {need.instance_type}; the weights don't fit anything smaller",
                f"Name a block of {need.instance_type}",
            )
        )
    if block.count < need.nodes:
        found.append(
            _finding(
                "count",
                Severity.ERROR,
                "the capacity block has fewer instances than nodes.count",
                f"{block.count} < {need.nodes}",
                "the rest of the nodes would never start",
                f"Set nodes.count to {block.count}, or name a larger block",
            )
        )
    return found


def is_local_zone(zone: str) -> bool:
    """Local Zones carry a location between region and letter: us-east-1-atl-2a."""
    return zone.count("-") > 2 + zone.startswith("us-gov-")


def _place(block: CapacityBlock, need: BlockNeed) -> list[Finding]:
    zone = block.availability_zone
    if not zone.startswith(need.region):
        return [
            _finding(
                "region",
                Severity.ERROR,
                "the capacity block is in another region",
                f"{zone}, not {need.region}",
                "instances launch only in the block's own zone",
                "Set `region` to the block's region",
            )
        ]
    if is_local_zone(zone):
        return [
            _finding(
                "local-zone",
                Severity.ERROR,
                "the capacity block is in a Local Zone",
                zone,
                "the program makes no subnets there, the control plane can't have one, and FSx for Lustre is not offered",
                "Take a block in an ordinary availability zone",
            )
        ]
    if zone not in need.zones:
        return [
            _finding(
                "zone",
                Severity.ERROR,
                "the capacity block's zone has no subnet",
                zone,
                "instances launch only in the block's own zone",
                f"Add {zone} to network.zones",
            )
        ]
    return []


def _time(block: CapacityBlock, need: BlockNeed, now: datetime, before_block: Range) -> list[Finding]:
    plan = schedule(block, need, before_block=before_block, now=now)
    serves, earliest = plan.first_token_by, plan.first_token_from
    if earliest >= plan.drain_at:
        return [
            _finding(
                "too-short",
                Severity.ERROR,
                "the capacity block ends before the engines could serve",
                f"first token {_text(earliest)} at best, drain {_text(plan.drain_at)}",
                f"weights from {need.shared_store} and the first compilation take longer than what is left",
                "Extend the block, take a later one, or a faster store (weights.store: nvme)",
            )
        ]
    found = []
    if serves >= plan.drain_at:
        found.append(
            _finding(
                "tight",
                Severity.WARNING,
                "the capacity block may end before the engines serve",
                f"first token {_text(serves)} at worst, drain {_text(plan.drain_at)}",
                "the slow end of the start-up estimate is beyond it",
                "Extend the block, or take a faster store",
            )
        )
    if now > plan.run_up_by and block.state == "scheduled":
        found.append(
            _finding(
                "late",
                Severity.WARNING,
                "staging may not be finished when the capacity block starts",
                f"starts {_text(block.start)}",
                "the block is paid for from its start, and would wait for the weights",
                f"Run `up` now; next time by {_text(plan.run_up_by)} for a block like this",
            )
        )
    if block.state == "scheduled":
        found.append(
            _finding(
                "scheduled",
                Severity.NOTE,
                "the capacity block has not started",
                _text(block.start),
                f"the node group is made empty and raised at {_text(plan.raise_at)}",
                "Nothing to do: `up` ends with the engines waiting for their nodes",
            )
        )
    return found
