"""The command that buys a capacity block, against a client that checks every request by EC2's service model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from components.aws.buy_block import main

OFFER = {
    "CapacityBlockOfferingId": "cb-0123456789abcdefg",
    "InstanceType": "p6-b300.48xlarge",
    "AvailabilityZone": "us-west-2c",
    "InstanceCount": 1,
    "StartDate": datetime(2026, 12, 3, 11, 30, tzinfo=UTC),
    "EndDate": datetime(2026, 12, 10, 11, 30, tzinfo=UTC),
    "CapacityBlockDurationHours": 168,
    "UpfrontFee": "16800.00",
    "CurrencyCode": "USD",
    "Tenancy": "default",
}
ARGUMENTS = ("--region", "us-west-2", "--days", "7")


@pytest.fixture
def ec2() -> Iterator[tuple[Any, Stubber]]:
    client = boto3.client("ec2", region_name="us-west-2", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stubber:
        yield client, stubber


def offers(stubber: Stubber, *items: dict[str, Any]) -> None:
    expected = {"InstanceType": "p6-b300.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 168}
    stubber.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": list(items)}, expected)


def purchase(stubber: Stubber) -> None:
    stubber.add_response(
        "purchase_capacity_block",
        {"CapacityReservation": {"CapacityReservationId": "cr-0123456789abcdef0"}},
        {
            "CapacityBlockOfferingId": OFFER["CapacityBlockOfferingId"],
            "InstancePlatform": "Linux/UNIX",
            "TagSpecifications": ANY,
        },
    )


def run(client: Any, *more: str, typed: str = "", interactive: bool = True) -> int:
    return main(
        [*ARGUMENTS, *more], client=lambda _region: client, ask=lambda _question: typed, interactive=interactive
    )


def test_without_an_offering_the_prices_are_shown_and_nothing_is_bought(
    ec2: tuple[Any, Stubber], capsys: pytest.CaptureFixture[str]
) -> None:
    client, stubber = ec2
    offers(stubber, OFFER)
    assert run(client) == 0
    shown = capsys.readouterr().out
    assert "16,800.00 USD up front (100.00 an instance-hour)" in shown
    assert "Nothing was bought" in shown


def test_the_cheapest_offer_comes_first(ec2: tuple[Any, Stubber], capsys: pytest.CaptureFixture[str]) -> None:
    client, stubber = ec2
    offers(stubber, {**OFFER, "CapacityBlockOfferingId": "cb-dear", "UpfrontFee": "20000"}, OFFER)
    run(client)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("cb-0123456789abcdefg")
    assert second.startswith("cb-dear")


def test_a_typed_price_that_fits_buys_the_block_and_says_its_reservation_id(
    ec2: tuple[Any, Stubber], capsys: pytest.CaptureFixture[str]
) -> None:
    client, stubber = ec2
    offers(stubber, OFFER)
    purchase(stubber)
    assert run(client, "--offering", str(OFFER["CapacityBlockOfferingId"]), typed="16,800") == 0
    stubber.assert_no_pending_responses()
    assert "Bought: cr-0123456789abcdef0" in capsys.readouterr().out


@pytest.mark.parametrize("typed", ["", "y", "yes", "168", "16800.01"])
def test_anything_but_the_price_buys_nothing(
    typed: str, ec2: tuple[Any, Stubber], capsys: pytest.CaptureFixture[str]
) -> None:
    client, stubber = ec2
    offers(stubber, OFFER)
    assert run(client, "--offering", str(OFFER["CapacityBlockOfferingId"]), typed=typed) == 1
    assert "Nothing was bought" in capsys.readouterr().err


def test_a_script_buys_with_the_exact_price(ec2: tuple[Any, Stubber]) -> None:
    client, stubber = ec2
    offers(stubber, OFFER)
    purchase(stubber)
    assert run(client, "--offering", str(OFFER["CapacityBlockOfferingId"]), "--price", "16800", interactive=False) == 0
    stubber.assert_no_pending_responses()


def test_an_offer_that_is_gone_is_not_replaced_by_another(
    ec2: tuple[Any, Stubber], capsys: pytest.CaptureFixture[str]
) -> None:
    client, stubber = ec2
    offers(stubber, {**OFFER, "CapacityBlockOfferingId": "cb-another"})
    assert run(client, "--offering", str(OFFER["CapacityBlockOfferingId"]), typed="16800") == 1
    assert "no longer among the offers" in capsys.readouterr().err


def test_all_bad_arguments_are_named_at_once_and_ec2_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def no_client(_region: str) -> Any:
        raise AssertionError("EC2 was asked")

    arguments = ["--region", "us-west-2", "--days", "15", "--instances", "65", "--price", "1"]
    assert main(arguments, client=no_client, ask=lambda _question: "", interactive=True) == 2
    told = capsys.readouterr().err
    assert "--days 15" in told
    assert "--instances 65" in told
    assert "--price without --offering" in told


def test_a_script_that_names_an_offer_without_a_price_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*ARGUMENTS, "--offering", "cb-1"], client=lambda _r: None, ask=lambda _q: "", interactive=False)
    assert code == 2
    assert "also give --price" in capsys.readouterr().err
