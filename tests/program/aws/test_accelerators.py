"""The accelerator pool, as the engine would be asked to make it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from components.aws.accelerators import AcceleratorPool, AcceleratorPoolArgs, ReservedCapacity
from components.aws.nodes import NodeRole
from tests.support.recorder import Recording, record

RAISE_AT = datetime(2026, 12, 3, 11, 35, tzinfo=UTC)


def outputs(kind: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 3},
        "aws:eks/nodeGroup:NodeGroup": {"resources": [{"autoscalingGroups": [{"name": "asg-1"}]}]},
    }.get(kind, {})


def pool(*, nodes: int = 1, efa_cards: range = range(0), raise_at: datetime | None = None) -> Recording:
    def build() -> None:
        AcceleratorPool(
            "accelerators",
            args=AcceleratorPoolArgs(
                cluster_name="kimi",
                cluster_security_group="sg-cluster",
                name="kimi-accelerators",
                role=NodeRole("node", partition="aws"),
                capacity=ReservedCapacity(reservation_id="cr-0123456789abcdef0", raise_at=raise_at),
                subnet="subnet-c",
                vpc_id="vpc-1",
                instance_type="p6-b300.48xlarge",
                nodes=nodes,
                efa_cards=efa_cards,
                kubernetes_version="1.36",
                release_version="1.36.2-20260714",
                disk_gib=200,
            ),
        )

    return record(build, outputs=outputs)


def test_the_launch_template_is_the_golden_one() -> None:
    template = dict(pool().one("LaunchTemplate").inputs)
    assert len(template.pop("userData")) > 100
    assert template == {
        "instanceType": "p6-b300.48xlarge",
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": {
            "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
        },
        "networkInterfaces": [
            {
                "networkCardIndex": 0,
                "deviceIndex": 0,
                "interfaceType": "interface",
                "deleteOnTermination": "true",
                "securityGroups": ["sg-cluster"],
            }
        ],
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeSize": 200, "volumeType": "gp3", "encrypted": "true", "deleteOnTermination": "true"},
            }
        ],
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2},
        "tagSpecifications": [
            {"resourceType": kind, "tags": {"Name": "kimi-accelerators"}}
            for kind in ("instance", "volume", "network-interface")
        ],
    }


@pytest.mark.parametrize(
    "forbidden", ["subnetId", "iamInstanceProfile", "imageId", "vpcSecurityGroupIds", "hibernationOptions"]
)
def test_the_launch_template_has_nothing_that_eks_refuses_in_a_managed_group(forbidden: str) -> None:
    recording = pool(nodes=2, efa_cards=range(1, 17))
    assert forbidden not in str(recording.one("LaunchTemplate").inputs)


def test_the_node_group_is_a_capacity_block_group_in_one_subnet_without_instance_types_or_disk_size() -> None:
    group = pool().one("NodeGroup").inputs
    assert group["capacityType"] == "CAPACITY_BLOCK"
    assert group["subnetIds"] == ["subnet-c"]
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"
    assert "instanceTypes" not in group
    assert "diskSize" not in group


def test_the_node_group_names_a_launch_template_version_by_number() -> None:
    assert pool().one("NodeGroup").inputs["launchTemplate"]["version"] == "3"


def test_before_the_block_starts_no_node_is_asked_for_and_a_scheduled_action_raises_the_group_after_the_start() -> None:
    recording = pool(nodes=2, raise_at=RAISE_AT)
    assert recording.one("NodeGroup").inputs["scalingConfig"] == {"minSize": 0, "maxSize": 2, "desiredSize": 0}
    assert recording.one("Schedule").inputs == {
        "autoscalingGroupName": "asg-1",
        "scheduledActionName": "capacity-block-starts",
        "startTime": "2026-12-03T11:35:00Z",
        "minSize": 0,
        "maxSize": 2,
        "desiredCapacity": 2,
    }


def test_an_active_block_gives_its_nodes_at_once_and_needs_no_scheduled_action() -> None:
    recording = pool(nodes=1)
    assert recording.one("NodeGroup").inputs["scalingConfig"] == {"minSize": 0, "maxSize": 1, "desiredSize": 1}
    assert not recording.of("Schedule")


def test_no_change_ever_needs_a_second_slot() -> None:
    group = pool().one("NodeGroup")
    assert group.delete_before_replace
    assert group.inputs["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}


def test_a_broken_gpu_reboots_the_node_and_never_replaces_it() -> None:
    repair = pool().one("NodeGroup").inputs["nodeRepairConfig"]
    assert repair["enabled"] is True
    overrides = repair["nodeRepairConfigOverrides"]
    assert {override["repairAction"] for override in overrides} == {"Reboot"}
    assert {override["nodeMonitoringCondition"] for override in overrides} == {"AcceleratedHardwareReady"}
    reasons = {override["nodeUnhealthyReason"] for override in overrides}
    assert {"NvidiaDoubleBitError", "NvidiaNVLinkError", "FabricManagerNotRunning"} <= reasons


def test_accelerators_are_tainted_so_that_only_what_asks_for_them_runs_there() -> None:
    assert pool().one("NodeGroup").inputs["taints"] == [
        {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}
    ]


def test_with_efa_every_interface_has_the_clusters_group_and_one_that_lets_members_talk_both_ways() -> None:
    recording = pool(nodes=2, efa_cards=range(1, 17))
    group = "SecurityGroup/accelerators-efa"
    for interface in recording.one("LaunchTemplate").inputs["networkInterfaces"]:
        assert interface["securityGroups"] == ["sg-cluster", group]
    for direction in ("SecurityGroupIngressRule", "SecurityGroupEgressRule"):
        rule = recording.one(direction).inputs
        assert (rule["securityGroupId"], rule["referencedSecurityGroupId"], rule["ipProtocol"]) == (group, group, "-1")


def test_the_pool_registers_its_children_under_itself() -> None:
    for resource in pool(nodes=2, efa_cards=range(1, 17), raise_at=RAISE_AT).resources:
        if resource.custom and resource.name.startswith("accelerators"):
            assert "llm-serving:aws:AcceleratorPool" in resource.parent
