"""Capacity blocks and node groups through calls that botocore's model has judged: the rules of the EKS and EC2 user guides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.clouds.aws.cloud import Aws
from sandbox.clouds.clock import Clock
from sandbox.clouds.tables import CloudError
from tests.support.simulated_aws import NOW, REGION, account, cluster

BLOCK = "cr-0123456789abcdef0"
START, END = NOW + timedelta(hours=2), NOW + timedelta(days=7)


def sell(directory: Path, **change: Any) -> None:
    block = {
        "id": BLOCK,
        "instanceType": "p6-b300.48xlarge",
        "availabilityZone": "us-west-2c",
        "count": 1,
        "start": START.isoformat(),
        "end": END.isoformat(),
        **change,
    }
    (directory / "capacity-blocks.json").write_text(json.dumps([block]))


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    sell(tmp_path)
    with account(tmp_path) as made:
        yield made


def template(aws: Aws, *, groups: list[str], **change: Any) -> str:
    data = {
        "InstanceType": "p6-b300.48xlarge",
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
        "NetworkInterfaces": [
            {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", "Groups": groups}
        ],
        **change,
    }
    made = aws.call(
        "ec2", "CreateLaunchTemplate", region=REGION, LaunchTemplateName="accelerators", LaunchTemplateData=data
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def group(
    aws: Aws,
    made: dict[str, Any],
    *,
    desired: int = 1,
    maximum: int = 2,
    zones: tuple[str, ...] = ("us-west-2c",),
    **change: Any,
) -> None:
    wanted = {
        "launchTemplate": {"id": change.pop("template", None) or template(aws, groups=[made["group"]]), "version": "1"},
        "capacityType": "CAPACITY_BLOCK",
        "amiType": "AL2023_x86_64_NVIDIA",
        **change,
    }
    aws.call(
        "eks",
        "CreateNodegroup",
        region=REGION,
        clusterName=made["name"],
        nodegroupName="accelerators",
        nodeRole=made["node_role"],
        subnets=[made["subnets"][zone] for zone in zones],
        scalingConfig={"minSize": 0, "maxSize": maximum, "desiredSize": desired},
        **wanted,
    )


def told(aws: Aws) -> dict[str, Any]:
    found: dict[str, Any] = aws.call(
        "eks", "DescribeNodegroup", region=REGION, clusterName="kimi", nodegroupName="accelerators"
    )["nodegroup"]
    return found


def stand_at(aws: Aws, state: Path, now: datetime) -> None:
    Clock(state).set(now)
    aws.tick()


def issue(aws: Aws) -> str:
    (found,) = told(aws)["health"]["issues"]
    return f"{found['code']}: {found['message']}"


@pytest.mark.parametrize(
    ("now", "state"),
    [
        (START - timedelta(seconds=1), "scheduled"),
        (START, "active"),
        (END - timedelta(seconds=1), "active"),
        (END, "expired"),
    ],
)
def test_a_blocks_state_follows_from_the_clock(aws: Aws, tmp_path: Path, now: datetime, state: str) -> None:
    stand_at(aws, tmp_path, now)
    found = aws.invoke("aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation", {"id": BLOCK})
    assert (found["state"], found["instanceCount"], found["availabilityZone"]) == (state, 1, "us-west-2c")
    assert datetime.fromisoformat(found["endDate"]) == END


def test_an_unknown_block_is_refused_with_ec2s_code(aws: Aws) -> None:
    with pytest.raises(CloudError, match=r"InvalidCapacityReservationId\.NotFound"):
        aws.invoke("aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation", {"id": "cr-0fedcba9876543210"})


def test_before_the_start_instances_are_refused_and_the_group_is_degraded_until_the_block_is_active(
    aws: Aws, tmp_path: Path
) -> None:
    group(aws, cluster(aws))
    assert told(aws)["status"] == "DEGRADED"
    assert "AsgInstanceLaunchFailures" in issue(aws)
    assert "InsufficientInstanceCapacity" in issue(aws)
    with pytest.raises(CloudError, match="not in Active State"):
        aws.call(
            "eks",
            "UpdateNodegroupConfig",
            region=REGION,
            clusterName="kimi",
            nodegroupName="accelerators",
            labels={"addOrUpdateLabels": {"a": "b"}},
        )
    stand_at(aws, tmp_path, START)
    assert told(aws)["status"] == "ACTIVE"
    assert len(aws.services.node_groups.machines()) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"availabilityZone": "us-west-2a"}, "InsufficientInstanceCapacity"),
        ({"instanceType": "p6-b200.48xlarge"}, "InsufficientInstanceCapacity"),
        ({"state": "payment-failed"}, "InsufficientInstanceCapacity"),
    ],
)
def test_a_block_for_something_else_gives_no_instance(
    aws: Aws, tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    sell(tmp_path, start=NOW.isoformat(), **change)
    group(aws, cluster(aws))
    assert code in issue(aws)


def test_more_than_the_block_has_is_refused_and_what_it_has_runs(aws: Aws, tmp_path: Path) -> None:
    sell(tmp_path, start=NOW.isoformat())
    group(aws, cluster(aws), desired=2)
    assert "ReservationCapacityExceeded" in issue(aws)
    assert len(aws.services.node_groups.machines()) == 1


def test_an_interface_without_the_clusters_group_never_joins(aws: Aws, tmp_path: Path) -> None:
    sell(tmp_path, start=NOW.isoformat())
    made = cluster(aws)
    own = aws.call("ec2", "CreateSecurityGroup", region=REGION, GroupName="own", Description="d", VpcId=made["vpc"])[
        "GroupId"
    ]
    group(aws, made, template=template(aws, groups=[own]))
    assert "NodeCreationFailure" in issue(aws)


@pytest.mark.parametrize(
    ("change", "zones", "why"),
    [
        ({}, ("us-west-2a", "us-west-2c"), "exactly one Availability Zone"),
        ({"instanceTypes": ["p6-b300.48xlarge"]}, ("us-west-2c",), "instance types"),
        ({"capacityType": "ON_DEMAND"}, ("us-west-2c",), "capacity-block needs"),
        ({"version": "1.36"}, ("us-west-2c",), "newer than the cluster"),
    ],
)
def test_a_group_that_eks_does_not_take_is_refused(
    aws: Aws, change: dict[str, Any], zones: tuple[str, ...], why: str
) -> None:
    with pytest.raises(CloudError, match=why):
        group(aws, cluster(aws), zones=zones, **change)


def test_a_block_group_needs_market_type_and_target_in_its_template(aws: Aws) -> None:
    made = cluster(aws)
    bare = template(
        aws, groups=[made["group"]], CapacityReservationSpecification={"CapacityReservationPreference": "open"}
    )
    with pytest.raises(CloudError, match="target reservation"):
        group(aws, made, template=bare)


def test_a_scheduled_action_raises_the_group_when_its_time_comes_and_is_gone_then(aws: Aws, tmp_path: Path) -> None:
    group(aws, cluster(aws), desired=0)
    name = told(aws)["resources"]["autoScalingGroups"][0]["name"]
    when = START + timedelta(minutes=5)
    wanted = {"MinSize": 0, "MaxSize": 1, "DesiredCapacity": 1, "StartTime": when.isoformat()}
    aws.call(
        "autoscaling",
        "PutScheduledUpdateGroupAction",
        region=REGION,
        AutoScalingGroupName=name,
        ScheduledActionName="start",
        **wanted,
    )
    stand_at(aws, tmp_path, when - timedelta(seconds=1))
    assert aws.services.node_groups.machines() == []
    stand_at(aws, tmp_path, when)
    assert len(aws.services.node_groups.machines()) == 1
    assert aws.call("autoscaling", "DescribeScheduledActions", region=REGION)["ScheduledUpdateGroupActions"] == []


def test_forty_minutes_before_the_end_the_group_goes_to_zero(aws: Aws, tmp_path: Path) -> None:
    sell(tmp_path, start=NOW.isoformat())
    group(aws, cluster(aws))
    stand_at(aws, tmp_path, END - timedelta(minutes=40, seconds=1))
    assert len(aws.services.node_groups.machines()) == 1
    stand_at(aws, tmp_path, END - timedelta(minutes=40))
    assert aws.services.node_groups.machines() == []
    assert told(aws)["scalingConfig"]["desiredSize"] == 0


def test_a_cluster_with_a_node_group_and_a_subnet_in_use_can_not_be_deleted(aws: Aws) -> None:
    made = cluster(aws)
    group(aws, made, desired=0)
    with pytest.raises(CloudError, match="ResourceInUseException"):
        aws.call("eks", "DeleteCluster", region=REGION, name="kimi")
    with pytest.raises(CloudError, match="DependencyViolation"):
        aws.call("ec2", "DeleteSubnet", region=REGION, SubnetId=made["subnets"]["us-west-2c"])
    with pytest.raises(CloudError, match="DependencyViolation"):
        aws.call("ec2", "DeleteSecurityGroup", region=REGION, GroupId=made["group"])


def test_a_later_process_finds_nodes_clock_and_cluster_as_they_were(tmp_path: Path) -> None:
    sell(tmp_path, start=NOW.isoformat())
    with account(tmp_path) as first:
        group(first, cluster(first))
        before = (told(first), first.services.node_groups.machines())
    with account(tmp_path) as later:
        assert (told(later), later.services.node_groups.machines()) == before
        group_name = before[0]["resources"]["autoScalingGroups"][0]["name"]
        found = later.call("autoscaling", "DescribeAutoScalingGroups", region=REGION)["AutoScalingGroups"]
        assert [each["AutoScalingGroupName"] for each in found] == [group_name]


def test_a_call_cut_off_while_it_was_written_down_never_happened(tmp_path: Path) -> None:
    with account(tmp_path) as first:
        first.call("ec2", "CreateVpc", region=REGION, CidrBlock="10.0.0.0/16")
        first.call("ec2", "CreateVpc", region=REGION, CidrBlock="10.1.0.0/16")
    journal = tmp_path / "journal.jsonl"
    journal.write_text(journal.read_text()[:-40])
    with account(tmp_path) as later:
        found = later.call("ec2", "DescribeVpcs", region=REGION, Filters=[{"Name": "isDefault", "Values": ["false"]}])[
            "Vpcs"
        ]
        assert [vpc["CidrBlock"] for vpc in found] == ["10.0.0.0/16"]


def test_coredns_is_degraded_until_there_is_a_node_without_a_taint(aws: Aws, tmp_path: Path) -> None:
    made = cluster(aws)
    aws.call("eks", "CreateAddon", region=REGION, clusterName="kimi", addonName="coredns")

    def status() -> str:
        return str(
            aws.call("eks", "DescribeAddon", region=REGION, clusterName="kimi", addonName="coredns")["addon"]["status"]
        )

    assert status() == "DEGRADED"
    aws.call(
        "eks",
        "CreateNodegroup",
        region=REGION,
        clusterName="kimi",
        nodegroupName="system",
        nodeRole=made["node_role"],
        subnets=list(made["subnets"].values()),
        scalingConfig={"minSize": 1, "maxSize": 2, "desiredSize": 1},
        instanceTypes=["m7i.4xlarge"],
    )
    assert status() == "ACTIVE"


def test_a_throttled_call_is_tried_again_and_given_up_in_the_end(aws: Aws, tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps([{"call": "CreateVpc", "fault": "throttle", "times": 3}]))
    assert aws.call("ec2", "CreateVpc", region=REGION, CidrBlock="10.0.0.0/16")
    faults.write_text(json.dumps([{"call": "CreateVpc", "fault": "throttle", "times": 100}]))
    with pytest.raises(CloudError, match="ThrottlingException"):
        aws.call("ec2", "CreateVpc", region=REGION, CidrBlock="10.1.0.0/16")


def test_a_group_without_capacity_is_degraded_with_its_reason_and_gets_its_node_later(aws: Aws, tmp_path: Path) -> None:
    made = cluster(aws)
    stand_at(aws, tmp_path, START)
    (tmp_path / "faults.json").write_text(json.dumps([{"call": "CreateNodegroup", "fault": "insufficient-capacity"}]))
    group(aws, made)
    assert issue(aws).startswith("AsgInstanceLaunchFailures: ")
    assert aws.services.node_groups.machines() == []
    stand_at(aws, tmp_path, START + timedelta(minutes=5))
    assert told(aws)["status"] == "ACTIVE"
    assert len(aws.services.node_groups.machines()) == 1


def test_a_role_that_the_service_may_not_assume_is_refused(aws: Aws) -> None:
    made = cluster(aws)
    with pytest.raises(CloudError, match=r"does not let pods\.eks\.amazonaws\.com assume it"):
        aws.call(
            "eks",
            "CreatePodIdentityAssociation",
            region=REGION,
            clusterName="kimi",
            namespace="llm",
            serviceAccount="staging",
            roleArn=made["node_role"],
        )
