"""The node group for everything that needs no accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.identity import NODE_POLICIES, ServiceRole

HOP_LIMIT = 2
"""IMDSv2 hops: 1 would cut pods off from the instance's region and zone."""


def root_disk(gib: int) -> dict[str, Any]:
    """The root volume: its size can only be set in the launch template once there is one."""
    return {
        "device_name": "/dev/xvda",
        "ebs": {"volume_size": gib, "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"},
    }


METADATA_OPTIONS = {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": HOP_LIMIT}


def instance_tags(name: str) -> list[dict[str, Any]]:
    """Tags for what EC2 makes from a launch template: the provider's default tags don't reach those."""
    return [{"resource_type": kind, "tags": {"Name": name}} for kind in ("instance", "volume", "network-interface")]


class NodeRole(ServiceRole):
    """The role of every node of a cluster."""

    def __init__(self, name: str, *, partition: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, service="ec2.amazonaws.com", policies=NODE_POLICIES, partition=partition, opts=opts)


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """instance_type, count: of on-demand nodes. subnets: private ones, in several zones. disk_gib: root volume."""

    cluster_name: pulumi.Input[str]
    name: str
    role: NodeRole
    subnets: tuple[pulumi.Input[str], ...]
    instance_type: str
    count: int
    kubernetes_version: str
    release_version: str | None
    disk_gib: int


class SystemNodes(pulumi.ComponentResource):
    """CPU nodes without a taint: CoreDNS, controllers, router, monitoring and the staging Job run here.

    node_group: what Deployments of the platform wait for. autoscaling_group: its name.
    """

    def __init__(self, name: str, *, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:SystemNodes", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        template = aws.ec2.LaunchTemplate(
            name,
            instance_type=args.instance_type,
            block_device_mappings=[root_disk(args.disk_gib)],
            metadata_options=METADATA_OPTIONS,
            tag_specifications=instance_tags(args.name),
            opts=child,
        )
        self.node_group = aws.eks.NodeGroup(
            name,
            cluster_name=args.cluster_name,
            node_role_arn=args.role.arn,
            subnet_ids=list(args.subnets),
            ami_type="AL2023_x86_64_STANDARD",
            capacity_type="ON_DEMAND",
            version=args.kubernetes_version,
            release_version=args.release_version,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels={"llm-serving/pool": "system"},
            scaling_config={"min_size": args.count, "max_size": args.count + 1, "desired_size": args.count},
            update_config={"max_unavailable": 1},
            node_repair_config={"enabled": True},
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.role.attached),
        )
        self.autoscaling_group: pulumi.Output[str] = self.node_group.resources[0].autoscaling_groups[0].name
        self.register_outputs({"autoscalingGroup": self.autoscaling_group})
