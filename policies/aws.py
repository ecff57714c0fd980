"""AWS: what is open to whom, what is encrypted, and what spends money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policies.rule import Rule, items, part

WORLD = ("0.0.0.0/0", "::/0")


def _api_open(cluster: Mapping[str, Any]) -> Iterator[str]:
    config = part(cluster, "vpcConfig") or {}
    if part(config, "endpointPublicAccess") is False:
        return
    callers = items(part(config, "publicAccessCidrs"))
    if not callers or any(cidr in WORLD for cidr in callers):
        yield (
            "The API server answers the whole internet. Set endpointPublicAccess to false, or list the ranges that may call it "
            "in publicAccessCidrs (cluster.endpoint in the stack's config)."
        )


def _secrets_plain(cluster: Mapping[str, Any]) -> Iterator[str]:
    if "secrets" not in items(part(cluster, "encryptionConfig", "resources")):
        yield "Kubernetes secrets are not encrypted with a key of yours. Give the cluster an encryptionConfig for secrets."


def _no_audit(cluster: Mapping[str, Any]) -> Iterator[str]:
    missing = {"api", "audit", "authenticator"} - {*items(cluster.get("enabledClusterLogTypes"))}
    if missing:
        yield f"The control plane keeps no {', '.join(sorted(missing))} log. Add it to enabledClusterLogTypes."


def _metadata_open(template: Mapping[str, Any]) -> Iterator[str]:
    if part(template, "metadataOptions", "httpTokens") != "required":
        yield "Instances hand out credentials without a token. Set metadataOptions.httpTokens to required."


def _disk_plain(template: Mapping[str, Any]) -> Iterator[str]:
    for mapping in items(template.get("blockDeviceMappings")):
        if str(part(mapping, "ebs", "encrypted")).lower() != "true":
            yield f"The volume {part(mapping, 'deviceName')} is not encrypted. Set ebs.encrypted."


def _open_to_world(rule: Mapping[str, Any]) -> Iterator[str]:
    cidr = rule.get("cidrIpv4") or rule.get("cidrIpv6")
    if cidr in WORLD:
        yield f"Port {rule.get('fromPort')} is open to the whole internet ({cidr}). Name the ranges that may connect (gateway.callers)."


def _bucket_public(block: Mapping[str, Any]) -> Iterator[str]:
    wanted = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    open_ways = [name for name in wanted if block.get(name) is not True]
    if open_ways:
        yield f"The bucket can be made public: set {', '.join(open_ways)} to true."


def _buys_block(_reservation: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "This resource buys a capacity block: paid in full at once, never returned, and bought again when its offering changes. "
        "Use `python -m components.aws.buy_block`, and give the program the cr-… id."
    )


_CLUSTER = frozenset({"aws:eks/cluster:Cluster"})
_TEMPLATE = frozenset({"aws:ec2/launchTemplate:LaunchTemplate"})

RULES = (
    Rule(
        name="eks-api-not-open",
        description="The API server does not answer the whole internet.",
        types=_CLUSTER,
        check=_api_open,
    ),
    Rule(
        name="eks-secrets-encrypted",
        description="Secrets are encrypted with a key of the account.",
        types=_CLUSTER,
        check=_secrets_plain,
    ),
    Rule(name="eks-logs-kept", description="Who did what in the cluster is kept.", types=_CLUSTER, check=_no_audit),
    Rule(
        name="metadata-needs-token",
        description="Instance metadata needs a session token.",
        types=_TEMPLATE,
        check=_metadata_open,
    ),
    Rule(name="disks-encrypted", description="Root volumes are encrypted.", types=_TEMPLATE, check=_disk_plain),
    Rule(
        name="no-port-open-to-the-world",
        description="No security group lets the whole internet in.",
        types=frozenset({"aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"}),
        check=_open_to_world,
    ),
    Rule(
        name="bucket-private",
        description="Buckets can't be made public.",
        types=frozenset({"aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"}),
        check=_bucket_public,
    ),
    Rule(
        name="no-block-bought",
        description="The program never buys capacity.",
        types=frozenset({"aws:ec2/capacityBlockReservation:CapacityBlockReservation"}),
        check=_buys_block,
    ),
)
