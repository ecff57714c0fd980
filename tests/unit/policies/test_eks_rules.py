"""Policy rules: each on something that it refuses, and all of them on the whole EKS program."""

from __future__ import annotations

from typing import Any

import pytest

from policies import aws, capacity_block, workloads
from policies.rule import Rule

RULES: dict[str, Rule] = {rule.name: rule for rule in (*aws.RULES, *capacity_block.RULES, *workloads.RULES)}
CLUSTER = {
    "vpcConfig": {"endpointPublicAccess": False},
    "encryptionConfig": {"resources": ["secrets"]},
    "enabledClusterLogTypes": ["api", "audit", "authenticator"],
}
TEMPLATE = {
    "instanceType": "p6-b300.48xlarge",
    "instanceMarketOptions": {"marketType": "capacity-block"},
    "capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": "cr-1"}},
    "metadataOptions": {"httpTokens": "required"},
    "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": "true"}}],
    "networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
}
GROUP = {
    "capacityType": "CAPACITY_BLOCK",
    "subnetIds": ["subnet-1"],
    "updateConfig": {"updateStrategy": "MINIMAL"},
    "scalingConfig": {"minSize": 0},
}
DIGEST = f"sglang@sha256:{'0' * 64}"


def deployment(
    *, container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, surge: Any = 0
) -> dict[str, Any]:
    engine = {
        "name": "engine",
        "image": DIGEST,
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": ["--tp-size=8"],
        "resources": {"claims": [{"name": "gpus"}]},
        **(container or {}),
    }
    spec = {"automountServiceAccountToken": False, "containers": [engine], **(pod or {})}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
    return {"spec": {"strategy": strategy, "template": {"spec": spec}}}


def interfaces(*listed: dict[str, Any]) -> dict[str, Any]:
    return {**TEMPLATE, "networkInterfaces": list(listed)}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("eks-api-not-open", {**CLUSTER, "vpcConfig": {}}, "whole internet"),
    (
        "eks-api-not-open",
        {**CLUSTER, "vpcConfig": {"endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]}},
        "whole internet",
    ),
    ("eks-secrets-encrypted", {**CLUSTER, "encryptionConfig": None}, "encryptionConfig"),
    ("eks-logs-kept", {**CLUSTER, "enabledClusterLogTypes": ["api"]}, "audit, authenticator"),
    ("metadata-needs-token", {**TEMPLATE, "metadataOptions": {"httpTokens": "optional"}}, "httpTokens"),
    ("disks-encrypted", {**TEMPLATE, "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {}}]}, "/dev/xvda"),
    ("no-port-open-to-the-world", {"cidrIpv4": "0.0.0.0/0", "fromPort": 443}, "443"),
    ("no-port-open-to-the-world", {"cidrIpv6": "::/0", "fromPort": 80}, "80"),
    ("bucket-private", {"blockPublicAcls": True}, "restrictPublicBuckets"),
    ("no-block-bought", {}, "buy_block"),
    ("block-is-aimed-at", {**TEMPLATE, "capacityReservationSpecification": None}, "names no reservation"),
    ("block-is-aimed-at", {**TEMPLATE, "instanceMarketOptions": None}, "on-demand price"),
    ("template-fits-managed-group", {**TEMPLATE, "iamInstanceProfile": {"name": "x"}}, "iamInstanceProfile"),
    ("template-fits-managed-group", interfaces({"subnetId": "subnet-1"}), "names a subnet"),
    ("b300-network-cards", interfaces({"networkCardIndex": 0, "interfaceType": "efa"}), "card 0"),
    (
        "b300-network-cards",
        interfaces({"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}),
        "card 1",
    ),
    ("b300-network-cards", interfaces({"networkCardIndex": 16, "deviceIndex": 0, "interfaceType": "efa"}), "card 16"),
    ("block-group-in-its-own-room", {**GROUP, "subnetIds": ["a", "b"]}, "one subnet"),
    ("block-group-in-its-own-room", {**GROUP, "instanceTypes": ["p6-b300.48xlarge"]}, "instanceTypes"),
    ("block-group-in-its-own-room", {**GROUP, "updateConfig": {"updateStrategy": "DEFAULT"}}, "MINIMAL"),
    ("block-group-in-its-own-room", {**GROUP, "scalingConfig": {"minSize": 1}}, "minSize"),
    ("engines-by-digest", deployment(container={"image": "lmsysorg/sglang:dev-kimi-k31-pro"}), "no digest"),
    ("engines-hold-no-token", deployment(container={"env": [{"name": "HF_TOKEN", "value": "x"}]}), "HF_TOKEN"),
    ("engines-hold-no-token", deployment(pod={"automountServiceAccountToken": True}), "automountServiceAccountToken"),
    (
        "one-gpu-allocator",
        deployment(container={"resources": {"claims": [{"name": "gpus"}], "limits": {"nvidia.com/gpu": "8"}}}),
        "by claim and by device plugin",
    ),
    ("no-spare-accelerator", deployment(surge=1), "maxSurge"),
    ("no-spare-accelerator", deployment(surge="25%"), "maxSurge"),
    ("no-hicache-on-cuda", deployment(container={"args": ["--enable-hierarchical-cache"]}), "39830"),
    ("engines-keep-to-their-pod", deployment(pod={"hostIPC": True}), "hostIPC"),
]


@pytest.mark.parametrize(
    ("name", "properties", "said"), REFUSED, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(REFUSED)]
)
def test_a_rule_refuses_what_it_is_for_and_says_what_to_do(name: str, properties: dict[str, Any], said: str) -> None:
    rule = RULES[name]
    (text,) = [text for kind in sorted(rule.types)[:1] for text in rule.violations(kind, properties)]
    assert said in text


def test_every_rule_is_shown_to_refuse_something() -> None:
    assert {name for name, *_ in REFUSED} == set(RULES)


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("aws:eks/cluster:Cluster", CLUSTER),
        ("aws:ec2/launchTemplate:LaunchTemplate", TEMPLATE),
        ("aws:eks/nodeGroup:NodeGroup", GROUP),
        ("kubernetes:apps/v1:Deployment", deployment()),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", {"cidrIpv4": "10.0.0.0/8", "fromPort": 443}),
    ],
)
def test_what_is_right_passes_every_rule(kind: str, properties: dict[str, Any]) -> None:
    assert [text for rule in RULES.values() for text in rule.violations(kind, properties)] == []
