"""The accelerator pool: a launch template that targets a capacity block, and its managed node group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.nodes import METADATA_OPTIONS, NodeRole, instance_tags, root_disk
from components.aws.user_data import network_interfaces, nodeadm_user_data

TAINT = "nvidia.com/gpu"
"""Keeps everything off the accelerators that does not ask for them."""

POOL_LABEL = "llm-serving/pool"
POOL = "accelerators"

REBOOT_REASONS = (
    "NvidiaDoubleBitError",
    "NvidiaNVLinkError",
    "NvidiaDeviceCountMismatch",
    "FabricManagerNotRunning",
    "NvidiaFabricError",
    "NvidiaXID48Error",
    "NvidiaXID79Error",
    "NvidiaXID94Error",
    "NvidiaXID95Error",
)
"""Reasons of the node monitoring agent for an unhealthy GPU (EKS user guide, node-repair)."""

REPAIR_WAIT_MINUTES = 10
"""How long a GPU must be unhealthy before its node is rebooted: EKS's own value for accelerated hardware."""


@dataclass(frozen=True, kw_only=True)
class ReservedCapacity:
    """A capacity block as the pool needs it: its `cr-…` id, and when to raise the group if it has not started yet."""

    reservation_id: str
    raise_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class AcceleratorPoolArgs:
    """What the pool needs to know.

    nodes: how many of the block's instances to use. efa_cards: network cards that get an EFA device; none for one node.
    subnet: the private subnet in the block's zone. disk_gib: root volume; weights and images live on the instance store.
    """

    cluster_name: pulumi.Input[str]
    cluster_security_group: pulumi.Input[str]
    name: str
    role: NodeRole
    capacity: ReservedCapacity
    subnet: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    instance_type: str
    nodes: int
    efa_cards: Sequence[int]
    kubernetes_version: str
    release_version: str | None
    disk_gib: int


class AcceleratorPool(pulumi.ComponentResource):
    """Nodes from a capacity block.

    A block that has not started holds no instance yet, so the group is made with none and a scheduled action raises it
    at the start; once the block is active the desired size is the configured one. Every change works within the block:
    an update ends a node before it starts its successor, a replacement deletes the group first.
    EKS itself scales the group to zero forty minutes before the block ends.

    node_group: what accelerator workloads wait for. launch_template_version: number in use.
    """

    def __init__(self, name: str, *, args: AcceleratorPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:AcceleratorPool", name, {}, opts)
        template = aws.ec2.LaunchTemplate(
            name,
            instance_type=args.instance_type,
            instance_market_options={"market_type": "capacity-block"},
            capacity_reservation_specification={
                "capacity_reservation_target": {"capacity_reservation_id": args.capacity.reservation_id}
            },
            network_interfaces=network_interfaces(
                efa_cards=args.efa_cards, security_groups=self._groups(name, args=args)
            ),
            block_device_mappings=[root_disk(args.disk_gib)],
            metadata_options=METADATA_OPTIONS,
            user_data=nodeadm_user_data(),
            tag_specifications=instance_tags(args.name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        waiting = args.capacity.raise_at is not None
        self.node_group = aws.eks.NodeGroup(
            name,
            cluster_name=args.cluster_name,
            node_role_arn=args.role.arn,
            subnet_ids=[args.subnet],
            ami_type="AL2023_x86_64_NVIDIA",
            capacity_type="CAPACITY_BLOCK",
            version=args.kubernetes_version,
            release_version=args.release_version,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels={POOL_LABEL: POOL},
            taints=[{"key": TAINT, "value": "true", "effect": "NO_SCHEDULE"}],
            scaling_config={"min_size": 0, "max_size": args.nodes, "desired_size": 0 if waiting else args.nodes},
            update_config={"max_unavailable": 1, "update_strategy": "MINIMAL"},
            node_repair_config=self._repair(),
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.role.attached, delete_before_replace=True),
        )
        if args.capacity.raise_at:
            self._schedule(name, args=args, start=args.capacity.raise_at)
        self.launch_template_version: pulumi.Output[str] = template.latest_version.apply(str)
        self.register_outputs({"launchTemplateVersion": self.launch_template_version})

    def _groups(self, name: str, *, args: AcceleratorPoolArgs) -> list[pulumi.Input[str]]:
        """Security groups of every interface: the cluster's, and with EFA one whose members may say anything to each other."""
        if not args.efa_cards:
            return [args.cluster_security_group]
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(
            f"{name}-efa",
            description="EFA traffic among accelerator nodes",
            vpc_id=args.vpc_id,
            tags={"Name": f"{args.name}-efa"},
            opts=child,
        )
        for kind in (aws.vpc.SecurityGroupIngressRule, aws.vpc.SecurityGroupEgressRule):
            direction = "in" if kind is aws.vpc.SecurityGroupIngressRule else "out"
            kind(
                f"{name}-efa-{direction}",
                security_group_id=group.id,
                referenced_security_group_id=group.id,
                ip_protocol="-1",
                description="EFA among members",
                opts=child,
            )
        return [args.cluster_security_group, group.id]

    def _repair(self) -> dict[str, Any]:
        """Reboot a node with a broken GPU: a replacement would lose the staged weights and wait for the slot to be cleaned."""
        return {
            "enabled": True,
            "max_parallel_nodes_repaired_count": 1,
            "node_repair_config_overrides": [
                {
                    "node_monitoring_condition": "AcceleratedHardwareReady",
                    "node_unhealthy_reason": reason,
                    "min_repair_wait_time_mins": REPAIR_WAIT_MINUTES,
                    "repair_action": "Reboot",
                }
                for reason in REBOOT_REASONS
            ],
        }

    def _schedule(self, name: str, *, args: AcceleratorPoolArgs, start: datetime) -> None:
        aws.autoscaling.Schedule(
            f"{name}-start",
            autoscaling_group_name=self.node_group.resources[0].autoscaling_groups[0].name,
            scheduled_action_name="capacity-block-starts",
            start_time=start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            min_size=0,
            max_size=args.nodes,
            desired_capacity=args.nodes,
            # A one-time action is gone once it ran; the group's deletion takes the rest with it.
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )
