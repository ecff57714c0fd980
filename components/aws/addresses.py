"""IPv4 addresses of the network: which subnet a zone gets. Pure; no Pulumi."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

PRIVATE_PREFIX = 20
"""Size of a private subnet: 4,091 usable addresses, since the VPC CNI gives every pod one of them."""

PUBLIC_PREFIX = 24
"""Size of a public subnet: it only holds a NAT gateway and, if asked for, a public load balancer."""


@dataclass(frozen=True, kw_only=True)
class ZoneSubnets:
    """The two subnets of one zone."""

    zone: str
    private: IPv4Network
    public: IPv4Network


def zone_subnets(*, cidr: str, zones: tuple[str, ...]) -> tuple[ZoneSubnets, ...]:
    """One private and one public subnet a zone, by position in `zones`: a zone added at the end moves no other.

    Private subnets fill the network from its start; public ones share its last private-sized piece.
    Raises ValueError when the network is too small or a zone is listed twice.
    """
    if len(set(zones)) != len(zones):
        raise ValueError(f"a zone is listed twice: {', '.join(zones)}")
    network = IPv4Network(cidr)
    pieces = list(network.subnets(new_prefix=PRIVATE_PREFIX)) if network.prefixlen <= PRIVATE_PREFIX else []
    if len(pieces) < len(zones) + 1:
        raise ValueError(
            f"{cidr} is too small for {len(zones)} zones: it has {len(pieces)} pieces of /{PRIVATE_PREFIX}, {len(zones) + 1} are needed"
        )
    public = list(pieces[-1].subnets(new_prefix=PUBLIC_PREFIX))
    return tuple(ZoneSubnets(zone=zone, private=pieces[i], public=public[i]) for i, zone in enumerate(zones))
