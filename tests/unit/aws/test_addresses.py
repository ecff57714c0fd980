"""Addresses of the network."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aws.addresses import zone_subnets

ZONES = tuple(f"us-west-2{letter}" for letter in "abcd")


@given(third=st.integers(0, 255), prefix=st.integers(14, 17), count=st.integers(1, 4))
def test_no_two_subnets_overlap_and_all_lie_inside_the_network(third: int, prefix: int, count: int) -> None:
    network = IPv4Network(f"10.{third}.0.0/{prefix}", strict=False)
    plan = zone_subnets(cidr=str(network), zones=ZONES[:count])
    subnets = [subnet for zone in plan for subnet in (zone.private, zone.public)]
    assert all(subnet.subnet_of(network) for subnet in subnets)
    assert not any(one.overlaps(other) for one, other in combinations(subnets, 2))


def test_a_zone_added_at_the_end_moves_no_other_zones_addresses() -> None:
    before = zone_subnets(cidr="10.64.0.0/16", zones=ZONES[:2])
    after = zone_subnets(cidr="10.64.0.0/16", zones=ZONES[:3])
    assert after[:2] == before


def test_private_subnets_are_the_slash_twenty_of_the_reference() -> None:
    assert [str(zone.private) for zone in zone_subnets(cidr="10.0.0.0/16", zones=ZONES[:3])] == [
        "10.0.0.0/20",
        "10.0.16.0/20",
        "10.0.32.0/20",
    ]


def test_a_network_that_is_too_small_is_refused_with_what_is_needed() -> None:
    with pytest.raises(
        ValueError, match=r"10\.0\.0\.0/19 is too small for 2 zones: it has 2 pieces of /20, 3 are needed"
    ):
        zone_subnets(cidr="10.0.0.0/19", zones=ZONES[:2])


def test_a_zone_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="listed twice"):
        zone_subnets(cidr="10.0.0.0/16", zones=("us-west-2a", "us-west-2a"))
