"""Buy an EC2 Capacity Block: `python -m components.aws.buy_block --help`.

Kept out of the program on purpose: a block is paid in full when it is bought, can be neither moved nor returned, and the
provider's resource for it would buy a second one whenever its offering id changes. The program takes the `cr-…` id.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

PLATFORM = "Linux/UNIX"
MAX_INSTANCES = 64
"""Instances of one block (EC2 user guide, Capacity Blocks)."""

DAYS = (*range(1, 15), *range(21, 183, 7))
"""Lengths that are sold: 1 to 14 days, then multiples of 7 up to 182 (EC2 user guide, Capacity Blocks)."""


@dataclass(frozen=True, kw_only=True)
class Offering:
    """One block on offer. fee: paid in full when it is bought, in `currency`."""

    offering_id: str
    zone: str
    start: datetime
    end: datetime
    instances: int
    fee: Decimal
    currency: str

    @property
    def hours(self) -> Decimal:
        """Length in hours."""
        return Decimal((self.end - self.start).total_seconds()) / 3600

    def line(self) -> str:
        """One line of the list that the buyer sees."""
        each = self.fee / (self.hours * self.instances)
        return (
            f"{self.offering_id}  {self.zone}  {self.start:%Y-%m-%d %H:%M} to {self.end:%Y-%m-%d %H:%M} UTC  "
            f"{self.hours.normalize():f} h  {self.fee:,.2f} {self.currency} up front ({each:,.2f} an instance-hour)"
        )


def offerings(
    ec2: Any, *, instance_type: str, instances: int, days: int, start: datetime | None, end: datetime | None
) -> list[Offering]:
    """What EC2 offers now, cheapest first."""
    request: dict[str, Any] = {
        "InstanceType": instance_type,
        "InstanceCount": instances,
        "CapacityDurationHours": 24 * days,
    }
    if start:
        request["StartDateRange"] = start
    if end:
        request["EndDateRange"] = end
    pages = ec2.get_paginator("describe_capacity_block_offerings").paginate(**request)
    found = [
        Offering(
            offering_id=item["CapacityBlockOfferingId"],
            zone=item["AvailabilityZone"],
            start=item["StartDate"].astimezone(UTC),
            end=item["EndDate"].astimezone(UTC),
            instances=item["InstanceCount"],
            fee=Decimal(item["UpfrontFee"]),
            currency=item["CurrencyCode"],
        )
        for page in pages
        for item in page["CapacityBlockOfferings"]
    ]
    return sorted(found, key=lambda offering: (offering.fee, offering.start))


def buy(ec2: Any, *, offering: Offering) -> str:
    """Buys the block and returns its `cr-…` id. Money is spent here and nowhere else."""
    answer = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offering.offering_id,
        InstancePlatform=PLATFORM,
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": [{"Key": "Name", "Value": "llm-serving"}]}],
    )
    return str(answer["CapacityReservation"]["CapacityReservationId"])


def main(
    arguments: Sequence[str], *, client: Callable[[str], Any], ask: Callable[[str], str], interactive: bool
) -> int:
    """Shows the offers; buys one when its id and its exact price were given, or the price was typed at the prompt.

    client: makes an EC2 client of a region. Returns 0 when something was bought or only looked at, 1 when there is
    nothing to buy or it was declined, 2 for bad arguments.
    """
    options = _parser().parse_args(arguments)
    problems = [*_problems(options, interactive=interactive)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 2
    ec2 = client(options.region)
    found = offerings(
        ec2,
        instance_type=options.instance_type,
        instances=options.instances,
        days=options.days,
        start=options.start,
        end=options.end,
    )
    if not found:
        print(
            f"No block of {options.instances} × {options.instance_type} for {options.days} days is on offer in {options.region}. Try other days, dates or region."
        )
        return 1
    print("\n".join(offering.line() for offering in found))
    if not options.offering:
        print(
            "\nNothing was bought. To buy one: --offering ID, and type its price when asked (or --price AMOUNT in a script)."
        )
        return 0
    chosen = next((offering for offering in found if offering.offering_id == options.offering), None)
    if chosen is None:
        print(f"{options.offering} is no longer among the offers. Nothing was bought.", file=sys.stderr)
        return 1
    return _confirm(ec2, chosen=chosen, price=options.price, ask=ask)


def _confirm(ec2: Any, *, chosen: Offering, price: Decimal | None, ask: Callable[[str], str]) -> int:
    print(f"\nTo buy:\n  {chosen.line()}\nIt is paid now, in full, and can be neither cancelled nor moved.")
    typed = (
        price
        if price is not None
        else _amount(ask(f"Type the price ({chosen.currency}) to buy it, anything else to stop: "))
    )
    if typed != chosen.fee:
        print(f"The price is {chosen.fee:.2f} {chosen.currency}. Nothing was bought.", file=sys.stderr)
        return 1
    reservation = buy(ec2, offering=chosen)
    print(
        f"Bought: {reservation}\nPut it into the stack's config as the block's id, and its zone {chosen.zone} among the network's zones."
    )
    return 0


def _amount(text: str) -> Decimal | None:
    digits = text.strip().replace(",", "")
    return Decimal(digits) if digits.replace(".", "", 1).isdigit() else None


def _problems(options: argparse.Namespace, *, interactive: bool) -> list[str]:
    problems = []
    if options.days not in DAYS:
        problems.append(
            f"--days {options.days}: blocks are sold for 1 to 14 days, then for multiples of 7 up to {DAYS[-1]}."
        )
    if not 1 <= options.instances <= MAX_INSTANCES:
        problems.append(f"--instances {options.instances}: a block has 1 to {MAX_INSTANCES}.")
    if options.price is not None and not options.offering:
        problems.append("--price without --offering: say which offer the price is for.")
    if options.offering and options.price is None and not interactive:
        problems.append("--offering without a terminal: also give --price, the exact amount that you accept.")
    return problems


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m components.aws.buy_block",
        description="List EC2 Capacity Blocks on offer with their prices; buy one only when its id and price are confirmed.",
    )
    parser.add_argument("--region", required=True, help="for example us-west-2")
    parser.add_argument("--instance-type", default="p6-b300.48xlarge")
    parser.add_argument("--instances", type=int, default=1, help="number of instances (default 1)")
    parser.add_argument("--days", type=int, required=True, help="length: 1 to 14, then multiples of 7 up to 182")
    parser.add_argument("--start", type=_day, help="not before this day (UTC), YYYY-MM-DD")
    parser.add_argument("--end", type=_day, help="ended by this day (UTC), YYYY-MM-DD")
    parser.add_argument("--offering", help="the offer to buy, cb-…; without it nothing is bought")
    parser.add_argument("--price", type=Decimal, help="the exact up-front price that is accepted, for scripts")
    return parser


def _run() -> int:
    """The command with real clients; what AWS or its credentials refuse becomes one line."""
    import boto3  # only this command needs it; `pulumi up` never does
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return main(
            sys.argv[1:],
            client=lambda region: boto3.client("ec2", region_name=region),
            ask=input,
            interactive=sys.stdin.isatty(),
        )
    except (BotoCoreError, ClientError) as refused:
        print(
            f"AWS did not answer as asked: {refused}. Nothing is known to be bought; check with `aws ec2 describe-capacity-reservations`.",
            file=sys.stderr,
        )
        return 1
    except (EOFError, KeyboardInterrupt):
        print("\nStopped. Nothing was bought.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(_run())
