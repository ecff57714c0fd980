"""What EKS and EC2 get wrong or expensive: versions, exposure, stores."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.platforms import EKS_DRA_FLOOR, EKS_OLDEST, EKS_STANDARD_SUPPORT, NVIDIA_AMI_FLOOR, P6_B300_REGIONS
from planning.findings import Severity
from planning.rules.context import Context
from planning.rules.rule import Found, Rules
from planning.settings.eks import EfsWeights, EksB300, FsxWeights, NoAuth, PublicEndpoint

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("aws-eks-b300 sheet")

EVERYWHERE = "0.0.0.0/0"


def _eks(context: Context) -> Iterator[EksB300]:
    if isinstance(context.settings, EksB300):
        yield context.settings


def _minor(version: str) -> int:
    return int(version.split(".")[1])


@RULES.stack(
    "endpoint-open",
    ERROR,
    why="everybody could try their luck with the cluster's API server",
    remedy="Name your own ranges in cluster.endpoint.callers, or use access: private",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        endpoint = settings.cluster.endpoint
        if isinstance(endpoint, PublicEndpoint) and EVERYWHERE in endpoint.callers:
            yield Found("the API server is open to the whole internet", EVERYWHERE)


@RULES.stack(
    "endpoint-private",
    NOTE,
    why="whoever runs `pulumi up` must reach the API server: from inside the VPC or a network connected to it",
    remedy="Run it on a machine in the VPC or over a VPN (cluster.endpoint.callers), or use access: public with your ranges",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if not isinstance(settings.cluster.endpoint, PublicEndpoint):
            yield Found("the API server has no public address", settings.cluster.name)


@RULES.stack(
    "gateway-open",
    ERROR,
    why="whoever finds the address uses the accelerators that you pay for",
    remedy="Set gateway.auth to api-keys or jwt, or gateway.exposure to internal",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        gateway = settings.gateway
        if gateway.exposure == "internet-facing" and isinstance(gateway.auth, NoAuth):
            yield Found("the gateway is on the internet without authentication", gateway.exposure)


@RULES.stack(
    "gateway-plain",
    ERROR,
    why="keys and prompts would travel in clear",
    remedy="Set gateway.certificate_arn to a certificate of ACM",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.gateway.exposure == "internet-facing" and not settings.gateway.certificate_arn:
            yield Found("the gateway is on the internet without TLS", f"port {settings.gateway.port}")


@RULES.stack(
    "gateway-callers",
    ERROR,
    why="the load balancer's security group lets nobody in that is not listed",
    remedy="Name the ranges in gateway.callers; 0.0.0.0/0 is allowed when authentication is on",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.gateway.exposure == "internet-facing" and not settings.gateway.callers:
            yield Found("nobody may call the internet-facing gateway", "gateway.callers is empty")


@RULES.stack(
    "gateway-port",
    WARNING,
    why="clients expect TLS on 443 and plain HTTP elsewhere",
    remedy="Set gateway.port to 80, or give a certificate",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        gateway = settings.gateway
        if gateway.exposure == "internal" and gateway.port == 443 and not gateway.certificate_arn:
            yield Found("plain HTTP on port 443", "no gateway.certificate_arn")


@RULES.stack(
    "kubernetes-version",
    ERROR,
    why=f"EKS offers 1.{EKS_OLDEST} and newer",
    remedy=f'Use "1.{EKS_STANDARD_SUPPORT}" or newer',
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if _minor(settings.cluster.version) < EKS_OLDEST:
            yield Found("the Kubernetes version is too old for EKS", settings.cluster.version)


@RULES.stack(
    "kubernetes-dra",
    ERROR,
    why="resource.k8s.io/v1 is served since 1.34, and 1.33 loses claims (kubernetes/kubernetes#133920)",
    remedy=f'Use "1.{EKS_DRA_FLOOR}" or newer, or gpu_allocation: device-plugin',
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        minor = _minor(settings.cluster.version)
        if settings.gpu_allocation == "dra" and EKS_OLDEST <= minor < EKS_DRA_FLOOR:
            yield Found("the Kubernetes version is too old for dynamic resource allocation", settings.cluster.version)


@RULES.stack(
    "ami-release",
    WARNING,
    why="before it, instance-store arrays are not put together again after a reboot, and NVSwitch services may be missing",
    remedy=f"Use a release of {NVIDIA_AMI_FLOOR} or later",
    source="awslabs/amazon-eks-ami#2755, #2239",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        release = settings.cluster.release_version
        if release and release.rpartition("-")[2] < NVIDIA_AMI_FLOOR:
            yield Found("an old release of the accelerated AMI", release)


@RULES.stack(
    "ami-unpinned",
    NOTE,
    why="the group takes the newest release of the day it is made",
    remedy="Pin cluster.release_version once it has worked",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.cluster.release_version is None:
            yield Found("the AMI's release is not pinned")


@RULES.stack(
    "fsx-size",
    ERROR,
    why="the weights don't fit",
    remedy="Use at least 2400",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        weights = settings.weights
        if isinstance(weights, FsxWeights) and weights.storage_gib < context.memory.published_gib * 1.05:
            yield Found("weights.storage_gib is smaller than the checkpoint", f"{weights.storage_gib} GiB")


@RULES.stack(
    "fsx-own-key",
    WARNING,
    why="FSx reads the bucket as a service role of its own, which only the key's policy can let in",
    remedy="Add a statement for AWSServiceRoleForFSxS3Access_* to the key's policy (docs/weights.md), or use S3's own keys",
    source="FSx for Lustre guide, s3-server-side-encryption-support",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if isinstance(settings.weights, FsxWeights) and settings.weights.kms_key:
            yield Found("FSx for Lustre before a bucket with a key of your own", settings.weights.kms_key)


@RULES.stack(
    "fsx-kernel",
    WARNING,
    why="nobody has shown the Lustre client on the kernel of this AMI (6.18 with Kubernetes 1.36)",
    remedy='Mount it once before the block starts, or use Kubernetes "1.35" (kernel 6.12)',
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if isinstance(settings.weights, FsxWeights) and _minor(settings.cluster.version) >= 36:
            yield Found("FSx for Lustre on an unproven kernel", settings.cluster.version)


@RULES.stack(
    "efs-slow",
    WARNING,
    why="every engine start reads 1.5 TB at 0.4 to 1.6 GB/s, and every read is billed",
    remedy="Use weights.store: nvme",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if isinstance(settings.weights, EfsWeights):
            yield Found("weights on EFS", settings.weights.store)


@RULES.stack(
    "region",
    WARNING,
    why="capacity blocks of this type were listed in " + ", ".join(P6_B300_REGIONS) + " only (2026-07-08)",
    remedy="Ask with `aws ec2 describe-capacity-block-offerings`; new regions come",
    source="EC2 user guide as quoted in awsome-distributed-ai, aws-pcs tests",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.region not in P6_B300_REGIONS:
            yield Found("the region is not known to have the machine", settings.region)


@RULES.stack(
    "bucket-dots",
    WARNING,
    why="TLS certificates of S3 don't cover names with dots",
    remedy="Use hyphens",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.weights.bucket and "." in settings.weights.bucket:
            yield Found("the bucket's name has a dot", settings.weights.bucket)


@RULES.stack(
    "device-plugin-selector",
    NOTE,
    why="only a claim can ask for 250 GiB of memory a GPU; the device plugin takes whatever the node has",
    remedy="Nothing to do: the node group holds only this machine",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.gpu_allocation == "device-plugin":
            yield Found("GPUs by device plugin, without the recipe's selector")


@RULES.stack(
    "one-node",
    NOTE,
    why="one replica: a restart is an outage of as long as loading takes",
    remedy="Set nodes.count to 2 with a block of two instances if that is too long",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _eks(context):
        if settings.nodes.count == 1:
            yield Found("a single engine", "nodes.count=1")
