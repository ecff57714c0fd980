"""The EKS program under mocks: AWS' answers that the program depends on, and what it registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.eks_b300 import build
from tests.support.eks import BLOCK, RESERVATION, settings
from tests.support.recorder import Recording, record

AUTOSCALING_GROUP = [{"autoscalingGroups": [{"name": "asg"}]}]


def outputs(kind: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What AWS adds to a resource when it makes it."""
    return {
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
        "aws:eks/nodeGroup:NodeGroup": {"resources": AUTOSCALING_GROUP},
        "aws:eks/cluster:Cluster": {
            "endpoint": "https://api.example",
            "certificateAuthority": {"data": "Q0E="},
            "vpcConfig": {"clusterSecurityGroupId": "sg-cluster"},
        },
        "aws:lb/loadBalancer:LoadBalancer": {"dnsName": "kimi.elb.example"},
        "aws:s3/bucket:Bucket": {"bucket": "weights-bucket", "arn": "arn:aws:s3:::weights-bucket"},
        "aws:fsx/lustreFileSystem:LustreFileSystem": {"dnsName": "fs-1.fsx.example", "mountName": "abc"},
        "aws:amp/workspace:Workspace": {"prometheusEndpoint": "https://aps.example"},
    }.get(kind, {})


def answers(block: Mapping[str, Any]) -> Any:
    """AWS' answers to lookups."""

    def calls(token: str, _args: Mapping[str, Any]) -> dict[str, Any]:
        if token.endswith(":getCallerIdentity"):
            return {"accountId": "123456789012", "arn": "arn:aws:iam::123456789012:role/ci", "userId": "x", "id": "x"}
        return {
            "id": RESERVATION,
            "state": block["state"],
            "instanceType": block["instance_type"],
            "availabilityZone": block["availability_zone"],
            "instanceCount": block["count"],
            "startDate": block["start"],
            "endDate": block["end"],
        }

    return calls


def program(*, block: Mapping[str, Any] = BLOCK, **changes: Any) -> tuple[Recording, dict[str, Any]]:
    """What the program registers for these settings, and the outputs that it returns."""
    given = settings(**changes)
    returned: dict[str, Any] = {}
    recording = record(lambda: returned.update(build(given)), outputs=outputs, calls=answers(block))
    return recording, returned
