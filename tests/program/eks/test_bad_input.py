"""Input that can't work: each a finding at preview, before any resource exists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planning.findings import ConfigurationError
from stacks.eks_b300 import build
from tests.support.eks import BLOCK, planned, settings
from tests.support.eks_program import answers, outputs
from tests.support.recorder import record


def refused(*, block: dict[str, Any] | None = None, lookup: Any = None, **changes: Any) -> tuple[set[str], list[str]]:
    """Rules of the errors, and what had been registered by then."""
    registered: list[str] = []
    caught: list[ConfigurationError] = []

    def attempt() -> None:
        try:
            build(settings(**changes))
        except ConfigurationError as error:
            caught.append(error)

    recording = record(attempt, outputs=outputs, calls=lookup or answers(block or BLOCK))
    registered += [resource.type for resource in recording.resources]
    assert caught, "the program went on"
    (error,) = caught
    assert all(finding.remedy for finding in error.findings if finding.severity == "error")
    return {finding.rule for finding in error.findings if finding.severity == "error"}, registered


def test_nothing_is_registered_when_something_is_wrong_but_the_provider_that_was_asked() -> None:
    _, registered = refused(block={**BLOCK, "state": "expired"})
    assert set(registered) <= {"pulumi:pulumi:Stack", "pulumi:providers:aws"}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    wrong = {**BLOCK, "state": "expired", "count": 1, "instance_type": "p5.48xlarge", "availability_zone": "us-west-2d"}
    rules, _ = refused(block=wrong, nodes={"count": 2})
    assert {"block-state", "block-count", "block-type", "block-zone"} <= rules


@pytest.mark.parametrize(
    ("block", "changes", "rule"),
    [
        ({"availability_zone": "us-west-2d"}, {}, "block-zone"),
        ({"availability_zone": "us-east-1a"}, {}, "block-region"),
        ({"state": "payment-failed"}, {}, "block-state"),
        ({"count": 1}, {"nodes": {"count": 2}}, "block-count"),
        ({"instance_type": "p6-b200.48xlarge"}, {}, "block-type"),
        ({"end": "2000-01-02T11:30:00Z", "start": "2000-01-01T11:30:00Z"}, {}, "block-over"),
    ],
)
def test_a_block_that_does_not_fit_is_refused(block: dict[str, Any], changes: dict[str, Any], rule: str) -> None:
    rules, _ = refused(block={**BLOCK, **block}, **changes)
    assert rule in rules


def test_an_unknown_or_foreign_block_is_refused_with_what_aws_said() -> None:
    def lookup(token: str, _args: Any) -> Any:
        assert "CapacityBlock" in token
        return {}, [("id", "InvalidCapacityReservationId.NotFound")]

    rules, _ = refused(lookup=lookup)
    assert rules == {"block-unknown"}


def ending_in(hours: float) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        **BLOCK,
        "start": (now - timedelta(days=1)).isoformat(),
        "end": (now + timedelta(hours=hours)).isoformat(),
    }


def test_a_block_that_ends_before_the_engines_could_serve_is_refused() -> None:
    rules, _ = refused(block=ending_in(1.25))
    assert "block-too-short" in rules


def test_a_slow_store_that_eats_the_rest_of_the_block_is_refused_where_a_fast_one_is_not() -> None:
    """Figures: EFS is filled at 960 GB in 31 min and read at 1.5 GiB/s at best (modelplane#383, EFS limits)."""
    need = {
        store: planned(weights={"store": store}).startup.first_token_seconds.low / 3600 for store in ("nvme", "efs")
    }
    assert need["nvme"] < need["efs"]
    left = (need["nvme"] + need["efs"]) / 2 + 1
    rules, _ = refused(block=ending_in(left), weights={"store": "efs"})
    assert "block-too-short" in rules
    record(
        lambda: (build(settings(weights={"store": "nvme"})), None)[1], outputs=outputs, calls=answers(ending_in(left))
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": {"flags": {"enable-hierarchical-cache": True}}}, "HiCache"),
        ({"cluster": {"endpoint": {"access": "public", "callers": ["0.0.0.0/0"]}}}, "0.0.0.0/0"),
        ({"region": "eu-central-1", "network": {"zones": ["eu-central-1a", "eu-central-1b"]}}, "eu-central-1"),
        ({"engine": {"image": "lmsysorg/sglang:latest"}}, "digest"),
    ],
    ids=["HiCache on CUDA", "API open to the world", "region without the type", "image without digest"],
)
def test_a_setting_that_can_not_work_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        record(lambda: (build(settings(**changes)), None)[1], outputs=outputs, calls=answers(BLOCK))
    assert said in str(caught.value)
