"""What AWS says about a capacity block. Looking costs nothing and creates nothing."""

from __future__ import annotations

from datetime import datetime

import pulumi
import pulumi_aws as aws

from planning.block import CapacityBlock
from planning.findings import ConfigurationError, Finding, Severity


def look_up(reservation: str, *, provider: aws.Provider) -> CapacityBlock:
    """The block as AWS describes it. Raises ConfigurationError when this account and region know no such block."""
    try:
        found = aws.ec2.get_capacity_block_reservation(id=reservation, opts=pulumi.InvokeOptions(provider=provider))
    except Exception as error:  # noqa: BLE001 - Pulumi raises nothing narrower for a failed lookup
        raise ConfigurationError([_unknown(reservation, reason=" ".join(str(error).split()))]) from None
    return CapacityBlock(
        reservation=reservation,
        state=found.state,
        instance_type=found.instance_type,
        availability_zone=found.availability_zone,
        count=found.instance_count,
        start=datetime.fromisoformat(found.start_date),
        end=datetime.fromisoformat(found.end_date),
    )


def _unknown(reservation: str, *, reason: str) -> Finding:
    return Finding(
        rule="block-unknown",
        severity=Severity.ERROR,
        what=f"the capacity block {reservation} can't be looked up",
        value=reason[:200],
        why="it is of another account or region, is no Capacity Block, or the credentials may not describe it",
        remedy="Compare with `aws ec2 describe-capacity-reservations --filters Name=reservation-type,Values=capacity-block`",
        source="EC2 API, DescribeCapacityReservations",
    )
