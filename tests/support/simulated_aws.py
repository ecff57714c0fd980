"""The simulated AWS account in the test's own process: calls and tables without an engine in front."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox.clouds.aws.cloud import Aws
from sandbox.clouds.clock import Clock
from sandbox.clouds.faults import Faults

NOW = datetime(2026, 12, 4, 9, tzinfo=UTC)
REGION = "us-west-2"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


@contextmanager
def account(state: Path, *, now: datetime = NOW) -> Iterator[Aws]:
    """An account whose clock stands; a second one with the same directory goes on where the first ended."""
    Clock(state).set(now)
    made = Aws(state=state, clock=Clock(state), faults=Faults(state / "faults.json", state=state), kubeconfig=None)
    made.configure({"region": REGION})
    try:
        yield made
    finally:
        made.api.close()


def role(aws: Aws, name: str, service: str) -> str:
    """ARN of a new role for a service."""
    trust = (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], '
        f'"Principal": {{"Service": "{service}"}}}}]}}'
    )
    made = aws.call("iam", "CreateRole", region=REGION, RoleName=name, AssumeRolePolicyDocument=trust)
    return str(made["Role"]["Arn"])


def cluster(aws: Aws, name: str = "kimi") -> dict[str, Any]:
    """A cluster with a subnet in each zone; returns its subnets by zone, its role and its security group."""
    vpc = aws.call("ec2", "CreateVpc", region=REGION, CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        zone: aws.call(
            "ec2", "CreateSubnet", region=REGION, VpcId=vpc, CidrBlock=f"10.64.{16 * i}.0/20", AvailabilityZone=zone
        )["Subnet"]["SubnetId"]
        for i, zone in enumerate(ZONES)
    }
    aws.call(
        "eks",
        "CreateCluster",
        region=REGION,
        name=name,
        version="1.35",
        roleArn=role(aws, "control-plane", "eks.amazonaws.com"),
        resourcesVpcConfig={"subnetIds": list(subnets.values())},
        accessConfig={"authenticationMode": "API"},
    )
    told = aws.call("eks", "DescribeCluster", region=REGION, name=name)["cluster"]
    return {
        "name": name,
        "vpc": vpc,
        "subnets": subnets,
        "group": told["resourcesVpcConfig"]["clusterSecurityGroupId"],
        "node_role": role(aws, "node", "ec2.amazonaws.com"),
    }
