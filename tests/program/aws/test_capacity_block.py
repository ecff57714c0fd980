"""Looking up a capacity block."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pulumi_aws as aws
import pytest

from components.aws.capacity_block import look_up
from planning.block import CapacityBlock
from planning.findings import ConfigurationError
from tests.support.recorder import record

ANSWER = {
    "id": "cr-0123456789abcdef0",
    "state": "active",
    "instanceType": "p6-b300.48xlarge",
    "availabilityZone": "us-west-2c",
    "instanceCount": 2,
    "startDate": "2026-12-03T11:30:00Z",
    "endDate": "2026-12-17T11:30:00Z",
}


def found(answer: Mapping[str, Any] | str) -> CapacityBlock:
    """The block that `answer` describes; a text is AWS' refusal."""
    blocks: list[CapacityBlock] = []

    def calls(token: str, args: Mapping[str, Any]) -> Any:
        assert token == "aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation"
        assert args["id"] == "cr-0123456789abcdef0"
        return ({}, [("id", answer)]) if isinstance(answer, str) else dict(answer)

    record(
        lambda: blocks.append(look_up("cr-0123456789abcdef0", provider=aws.Provider("aws", region="us-west-2"))),
        calls=calls,
    )
    return blocks[0]


def test_a_block_is_what_aws_says_it_is() -> None:
    assert found(ANSWER) == CapacityBlock(
        reservation="cr-0123456789abcdef0",
        state="active",
        instance_type="p6-b300.48xlarge",
        availability_zone="us-west-2c",
        count=2,
        start=datetime(2026, 12, 3, 11, 30, tzinfo=UTC),
        end=datetime(2026, 12, 17, 11, 30, tzinfo=UTC),
    )


def test_an_id_of_another_account_is_a_finding_that_says_where_to_look() -> None:
    with pytest.raises(ConfigurationError) as caught:
        found("InvalidCapacityReservationId.NotFound: The Capacity Reservation ID does not exist")
    (finding,) = caught.value.findings
    assert finding.rule == "block-unknown"
    assert "InvalidCapacityReservationId.NotFound" in finding.value
    assert "describe-capacity-reservations" in finding.remedy
