"""EC2 Capacity Blocks: bought outside, with a state that follows from the clock."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox.clouds.aws.api import ACCOUNT, Call
from sandbox.clouds.aws.services.support import arn, refuse
from sandbox.clouds.clock import moment

END_OF_USE = timedelta(minutes=30)
"""EC2 begins to terminate a block's instances this long before its end (EC2 user guide, Capacity Blocks)."""


class Capacity:
    """Blocks by reservation id, as `capacity-blocks.json` in the state directory lists them; each is taken over once.

    [{"id": "cr-…", "instanceType": "p6-b300.48xlarge", "availabilityZone": "us-west-2c", "count": 1,
      "start": "2026-12-01T11:30:00Z", "end": "2026-12-15T11:30:00Z"}]

    state: only for what time does not decide, such as payment-failed or cancelled.
    """

    service = "ec2"

    def __init__(self, *, file: Path) -> None:
        self._file = file
        self.blocks: dict[str, dict[str, Any]] = {}
        self.used: dict[str, int] = {}

    def arrivals(self) -> list[dict[str, Any]]:
        """Blocks in the file that are not known yet, or are known otherwise."""
        if not self._file.exists():
            return []
        return [block for block in json.loads(self._file.read_text()) if self.blocks.get(block["id"]) != block]

    def take(self, block: dict[str, Any]) -> None:
        """Makes the block known."""
        self.blocks[block["id"]] = block

    def state(self, id: str, now: datetime) -> str:
        """As EC2 names it."""
        block = self.blocks[id]
        if "state" in block:
            return str(block["state"])
        if now < moment(block["start"]):
            return "scheduled"
        return "active" if now < moment(block["end"]) else "expired"

    def refusal(self, id: str, *, instance_type: str, zone: str, running: int, now: datetime) -> str | None:
        """Why one more instance can't be launched into the block, as EC2 would say; None when it can."""
        block = self.blocks.get(id)
        if block is None:
            return f"InvalidCapacityReservationId.NotFound: The capacity reservation ID '{id}' does not exist."
        if self.state(id, now) != "active" or now >= moment(block["end"]) - END_OF_USE:
            return f"InsufficientInstanceCapacity: the Capacity Block {id} is not available for launches (state {self.state(id, now)})."
        if zone != block["availabilityZone"] or instance_type != block["instanceType"]:
            return (
                f"InsufficientInstanceCapacity: the Capacity Block {id} is for {block['instanceType']} in "
                f"{block['availabilityZone']}, the launch asks for {instance_type} in {zone}."
            )
        if running >= block["count"]:
            return (
                f"ReservationCapacityExceeded: the reservation {id} has {block['count']} instances and all are in use."
            )
        return None

    def describe_capacity_reservations(self, call: Call) -> dict[str, Any]:
        wanted = call.params.get("CapacityReservationIds") or sorted(self.blocks)
        missing = [id for id in wanted if id not in self.blocks]
        if missing:
            raise refuse(
                "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{missing[0]}' does not exist."
            )
        zones = call.api.moto("ec2", "DescribeAvailabilityZones", call.region, {})["AvailabilityZones"]
        ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones}
        here = [id for id in wanted if self.blocks[id]["availabilityZone"] in ids]
        told = [self._told(self.blocks[id], call, ids) for id in here]
        for each in call.params.get("Filters", []):
            member = {"instance-type": "InstanceType", "state": "State", "availability-zone": "AvailabilityZone"}.get(
                each["Name"]
            )
            if member is None:
                raise refuse("InvalidParameterValue", f"The filter '{each['Name']}' is not simulated")
            told = [block for block in told if block[member] in each["Values"]]
        return {"CapacityReservations": told}

    def _told(self, block: dict[str, Any], call: Call, zone_ids: dict[str, str]) -> dict[str, Any]:
        start, end = moment(block["start"]), moment(block["end"])
        return {
            "CapacityReservationId": block["id"],
            "CapacityReservationArn": arn("ec2", call.region, f"capacity-reservation/{block['id']}"),
            "OwnerId": ACCOUNT,
            "AvailabilityZone": block["availabilityZone"],
            "AvailabilityZoneId": zone_ids[block["availabilityZone"]],
            "InstanceType": block["instanceType"],
            "InstancePlatform": "Linux/UNIX",
            "Tenancy": "default",
            "TotalInstanceCount": block["count"],
            "AvailableInstanceCount": block["count"] - self.used.get(block["id"], 0)
            if self.state(block["id"], call.now) == "active"
            else 0,
            "EbsOptimized": True,
            "State": self.state(block["id"], call.now),
            "StartDate": start,
            "EndDate": end,
            "EndDateType": "limited",
            "InstanceMatchCriteria": "targeted",
            "CreateDate": min(start, call.now),
            "ReservationType": "capacity-block",
            "CapacityBlockId": block["id"].replace("cr-", "cb-"),
            "DeliveryPreference": "fixed",
            "Tags": [],
        }
