"""Capacity blocks: what EC2 and EKS refuse, or silently bill on demand, when the launch template is not right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policies.rule import Rule, count, items, part

FORBIDDEN = ("iamInstanceProfile", "hibernationOptions", "instanceInitiatedShutdownBehavior")


def _is_block(template: Mapping[str, Any]) -> bool:
    return bool(part(template, "instanceMarketOptions", "marketType") == "capacity-block")


def _target_lost(template: Mapping[str, Any]) -> Iterator[str]:
    target = part(template, "capacityReservationSpecification", "capacityReservationTarget") or {}
    aimed = part(target, "capacityReservationId") or part(target, "capacityReservationResourceGroupArn")
    if _is_block(template) and not aimed:
        yield "The launch template is for a capacity block but names no reservation: set capacityReservationTarget.capacityReservationId."
    if aimed and not _is_block(template):
        yield (
            "The launch template names a reservation without marketType capacity-block: EC2 would launch at the on-demand price "
            "or refuse."
        )


def _refused_by_eks(template: Mapping[str, Any]) -> Iterator[str]:
    if not _is_block(template):
        return
    present = [name for name in FORBIDDEN if template.get(name)]
    if present:
        yield f"EKS refuses a launch template with {', '.join(present)} in a managed node group."
    if any(part(interface, "subnetId") for interface in items(template.get("networkInterfaces"))):
        yield "A network interface names a subnet: EKS takes subnets from the node group, and then only one interface would be allowed."


def _wrong_cards(template: Mapping[str, Any]) -> Iterator[str]:
    if template.get("instanceType") != "p6-b300.48xlarge":
        return
    for interface in items(template.get("networkInterfaces")):
        card, index = part(interface, "networkCardIndex") or 0, part(interface, "deviceIndex") or 0
        kind = part(interface, "interfaceType") or "interface"
        if card == 0 and kind != "interface":
            yield f"Network card 0 of p6-b300 has no EFA, the template asks for {kind} (aws/aws-parallelcluster#7143)."
        if card > 0 and (kind != "efa-only" or index != 0):
            yield f"Network card {card:.0f} wants efa-only at device index 0, not {kind} at {index:.0f}: the node would not join."


def _wrong_group(group: Mapping[str, Any]) -> Iterator[str]:
    if group.get("capacityType") != "CAPACITY_BLOCK":
        return
    if count(group.get("subnetIds")) != 1:
        yield "A node group on a capacity block has exactly one subnet: the one in the block's zone."
    present = [name for name in ("instanceTypes", "diskSize") if group.get(name)]
    if present:
        yield f"{', '.join(present)} must be in the launch template of a capacity-block group, not in the group."
    if part(group, "updateConfig", "updateStrategy") != "MINIMAL":
        yield "An update would start a second node before it ends the first, and the block has no slot for it: set updateStrategy to MINIMAL."
    if part(group, "scalingConfig", "minSize"):
        yield "minSize above 0 fails when EKS scales the group to zero before the block ends: set it to 0."


RULES = (
    Rule(
        name="block-is-aimed-at",
        description="A launch template for a capacity block names its reservation, and the other way round.",
        types=frozenset({"aws:ec2/launchTemplate:LaunchTemplate"}),
        check=_target_lost,
    ),
    Rule(
        name="template-fits-managed-group",
        description="A launch template has nothing that a managed node group refuses.",
        types=frozenset({"aws:ec2/launchTemplate:LaunchTemplate"}),
        check=_refused_by_eks,
    ),
    Rule(
        name="b300-network-cards",
        description="The network cards of p6-b300 are used as they are built.",
        types=frozenset({"aws:ec2/launchTemplate:LaunchTemplate"}),
        check=_wrong_cards,
    ),
    Rule(
        name="block-group-in-its-own-room",
        description="A node group on a capacity block needs no second slot and lies in one zone.",
        types=frozenset({"aws:eks/nodeGroup:NodeGroup"}),
        check=_wrong_group,
    ),
)
