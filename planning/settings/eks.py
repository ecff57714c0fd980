"""The schema of an EKS environment: one or more p6-b300.48xlarge from an EC2 Capacity Block."""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv4Network
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, field_validator, model_validator

from planning.settings.base import Engine, Model, Name, SecretKey, Settings, Stack, Staging, how, problem

Cidr = Annotated[str, Field(description="An IPv4 range, for example 10.0.0.0/8.")]
Zone = Annotated[
    str,
    Field(
        pattern=r"^[a-z]{2}(-[a-z]+)+-\d(-[a-z]{3}-\d)?[a-z]$",
        description="An availability zone by its name in your account, for example us-west-2c; not a zone ID (usw2-az3).",
    ),
]

SMALLEST_PREFIX = 18
"""The VPC is cut into six /20 and more (two a zone): a /18 holds two zones, a /16 three with room."""


def _network(value: str) -> IPv4Network:
    try:
        return IPv4Network(value)
    except ValueError as error:
        raise problem(
            f"{value} is not an IPv4 range",
            why=str(error),
            remedy="Write it as address/prefix, for example 10.64.0.0/16.",
        ) from None


def _ranges(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(_network(value)) for value in values)


class BlockFacts(Settings):
    """A capacity block as `aws ec2 describe-capacity-reservations` shows it; what the plan needs where it can't ask AWS."""

    state: str = Field(description="State of the reservation; only scheduled and active can be used.")
    instance_type: str = Field(description="Instance type, for example p6-b300.48xlarge.")
    availability_zone: Zone
    count: int = Field(ge=1, description="Instances in the block.")
    start: AwareDatetime = Field(description="When the block starts, with its zone: 2026-12-10T11:30:00Z.")
    end: AwareDatetime = Field(description="When the block ends, with its zone.")

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.end <= self.start:
            raise problem(
                "the block's end is not after its start",
                why=f"{_utc(self.start)} to {_utc(self.end)}",
                remedy="Copy StartDate and EndDate from `aws ec2 describe-capacity-reservations`.",
            )
        return self


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


class CapacityBlock(Settings):
    """The EC2 Capacity Block that the accelerators come from. It is used, never bought, by this program."""

    reservation: str = Field(
        pattern=r"^cr-[0-9a-f]{8,17}$",
        description="Id of the reservation, cr-….",
        json_schema_extra=how(
            "Find yours with `aws ec2 describe-capacity-reservations --filters Name=reservation-type,Values=capacity-block`, "
            "or buy one first with `python -m components.aws.buy_block`."
        ),
    )
    facts: BlockFacts | None = Field(
        None,
        description="What AWS says about the block. The program asks AWS itself; fill it in for a plan without credentials.",
    )


class Network(Settings):
    """The VPC that is made."""

    cidr: Cidr = Field("10.64.0.0/16", description="IPv4 range of the VPC, a /18 or larger.")
    zones: tuple[Zone, ...] = Field(
        min_length=2,
        max_length=4,
        description="Availability zones with subnets, the capacity block's among them; EKS wants two or more. "
        "Adding one at the end moves nothing.",
    )

    @field_validator("cidr")
    @classmethod
    def _large_enough(cls, value: str) -> str:
        network = _network(value)
        if network.prefixlen > SMALLEST_PREFIX:
            raise problem(
                f"{value} is too small for the subnets",
                why="every zone gets a private and a public subnet, and pods take addresses from them",
                remedy=f"Use a /{SMALLEST_PREFIX} or larger, for example 10.64.0.0/16.",
            )
        if network.prefixlen < 16:
            raise problem(
                f"{value} is larger than a VPC may be",
                why="AWS takes /16 to /28",
                remedy="Use a /16, for example 10.64.0.0/16.",
            )
        return value

    @field_validator("zones")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise problem(
                "a zone is named twice", why="each zone gets one pair of subnets", remedy="Name every zone once."
            )
        return value


class PrivateEndpoint(Settings):
    """The API server is reached from inside the VPC only (and from networks connected to it)."""

    access: Literal["private"] = "private"
    callers: tuple[Cidr, ...] = Field(
        (), description="Networks connected to the VPC (VPN, peering) that may reach the API server."
    )

    _callers = field_validator("callers")(_ranges)


class PublicEndpoint(Settings):
    """The API server also has a public address, for the callers that are listed."""

    access: Literal["public"]
    callers: tuple[Cidr, ...] = Field(
        min_length=1, description="Ranges that may call, for example your office's 203.0.113.0/24."
    )

    _callers = field_validator("callers")(_ranges)


class SystemNodes(Settings):
    """Nodes without accelerators: platform, router, gateway, monitoring, and the staging of the weights."""

    instance_type: str = Field(
        "m7i.4xlarge", pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", description="EC2 instance type, x86_64."
    )
    count: int = Field(3, ge=2, le=20, description="How many; two or more, so that one may fail.")
    disk_gib: int = Field(100, ge=50, description="Root volume in GiB.")


class Cluster(Settings):
    """The EKS control plane."""

    name: Name = Field("llm-serving", description="Name of the cluster; other names are derived from it.")
    version: str = Field("1.36", pattern=r"^1\.\d{2}$", description='Kubernetes version, in quotes: "1.36".')
    release_version: str | None = Field(
        "1.36.2-20260714",
        pattern=r"^1\.\d{2}\.\d+-\d{8}$",
        description="Release of the accelerated AMI, KUBERNETES-DATE; null: the newest when the group is made.",
    )
    control_plane: Literal["aws", "eks-component"] = Field(
        "aws", description="Plain AWS resources, or the pulumi-eks component for teams that standardise on it."
    )
    endpoint: Annotated[PrivateEndpoint | PublicEndpoint, Field(discriminator="access")] = Field(
        default_factory=PrivateEndpoint, description="Who reaches the API server."
    )
    administrators: tuple[str, ...] = Field(
        (), description="IAM principals (ARNs) with full rights, beside the one that creates the cluster."
    )
    log_retention_days: int = Field(90, ge=1, description="How long control-plane logs are kept, in days.")
    system_nodes: SystemNodes = Field(
        default_factory=SystemNodes,
        description="Nodes without accelerators.",
    )
    addons: dict[str, str] = Field(
        default_factory=dict,
        description="Versions of EKS add-ons by name; others get the default of the Kubernetes version.",
    )

    @field_validator("administrators")
    @classmethod
    def _arns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for arn in value:
            if not arn.startswith("arn:aws") or ":iam::" not in arn:
                raise problem(
                    f"{arn} is not an IAM principal",
                    why="an access entry takes the ARN of a role or user",
                    remedy="Write arn:aws:iam::ACCOUNT:role/NAME.",
                )
        return value

    @model_validator(mode="after")
    def _same_minor(self) -> Self:
        if self.release_version and not self.release_version.startswith(self.version + "."):
            raise problem(
                f"AMI release {self.release_version} is not for Kubernetes {self.version}",
                why="EKS refuses a node group whose AMI is of another minor version",
                remedy="Read the release from SSM: /aws/service/eks/optimized-ami/"
                f"{self.version}/amazon-linux-2023/x86_64/nvidia/recommended/release_version, or set it to null.",
            )
        return self


class Nodes(Settings):
    """The accelerator nodes. One node is one engine replica."""

    count: int = Field(1, ge=1, le=64, description="p6-b300.48xlarge instances taken from the block.")
    disk_gib: int = Field(200, ge=100, description="Root volume in GiB; images and weights are on the instance store.")


class WeightsCommon(Settings):
    """What every way of holding the weights has: the bucket that is the source of truth."""

    bucket: str | None = Field(
        None,
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
        description="Name of the S3 bucket that is made; unset: a generated one. Names are global.",
        json_schema_extra=how("Choose a name that nobody has yet, or leave `bucket` out for a generated one."),
    )
    kms_key: str | None = Field(
        None,
        pattern=r"^arn:aws[\w-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$",
        description="ARN of a KMS key of your own that the bucket's objects are encrypted with (the key's, not an alias'); "
        "unset: S3's own keys. Its policy must let this account's IAM policies decide.",
    )
    keep: bool = Field(True, description="Keep the bucket and the weights in it when the stack is destroyed.")
    staging: Staging = Field(
        default_factory=Staging,
        description="How the weights get into the bucket.",
    )


class NvmeWeights(WeightsCommon):
    """Each node copies the weights from the bucket to its own instance store (RAID0) once."""

    store: Literal["nvme"]


class FsxWeights(WeightsCommon):
    """One FSx for Lustre file system in the block's zone, linked to the bucket and warmed before the engines start."""

    store: Literal["fsx"]
    storage_gib: int = Field(4800, description="Size in GiB: 1200, 2400 or a multiple of 2400.")
    mbps_per_tib: Literal[125, 250, 500, 1000] = Field(
        1000, description="Throughput tier in MB/s a TiB (PERSISTENT_2)."
    )

    @field_validator("storage_gib")
    @classmethod
    def _offered(cls, value: int) -> int:
        if value != 1200 and (value <= 0 or value % 2400):
            raise problem(
                f"{value} GiB is not a size that FSx for Lustre has",
                why="PERSISTENT_2 comes in 1200, 2400 and multiples of 2400 GiB",
                remedy=f"Use {max(2400, -(-value // 2400) * 2400)}.",
            )
        return value


class EfsWeights(WeightsCommon):
    """One EFS file system with elastic throughput, as in the recipe's shared cache. The slowest of the three."""

    store: Literal["efs"]


class PrometheusMonitoring(Settings):
    """Prometheus in the cluster."""

    kind: Literal["prometheus"]
    retention_days: int = Field(15, ge=1, description="How long samples are kept, in days.")
    storage_gib: int = Field(100, ge=10, description="Volume for samples, in GiB.")


class ManagedPrometheusMonitoring(Settings):
    """Amazon Managed Service for Prometheus with a managed collector."""

    kind: Literal["amp"]
    alert_topic: str | None = Field(
        None, pattern=r"^arn:aws[\w-]*:sns:", description="SNS topic (ARN) that alerts go to."
    )


class NoAuth(Settings):
    """Whoever reaches the gateway may use it."""

    kind: Literal["none"]


class ApiKeys(Settings):
    """A bearer token out of a list."""

    kind: Literal["api-keys"]
    secret: SecretKey = Field(description="Secret whose key holds one API key a line.")


class Jwt(Settings):
    """A JSON Web Token of an issuer that you trust."""

    kind: Literal["jwt"]
    issuer: str = Field(pattern=r"^https://", description="`iss` of accepted tokens.")
    audiences: tuple[str, ...] = Field(min_length=1, description="Accepted values of `aud`.")
    jwks_uri: str = Field(pattern=r"^https://", description="Where the issuer's public keys are.")


class Gateway(Settings):
    """Where requests come in."""

    auth: Annotated[NoAuth | ApiKeys | Jwt, Field(discriminator="kind")] = Field(
        default_factory=lambda: NoAuth(kind="none"), description="Who may send requests."
    )
    exposure: Literal["internal", "internet-facing"] = Field("internal", description="Scheme of the load balancer.")
    callers: tuple[Cidr, ...] = Field(
        (), description="Ranges that may connect; empty: the VPC only. Needed for internet-facing."
    )
    port: int = Field(80, ge=1, le=65535, description="Port of the load balancer; 443 with a certificate.")
    certificate_arn: str | None = Field(
        None, pattern=r"^arn:aws[\w-]*:acm:", description="ACM certificate; unset: plain HTTP."
    )
    idle_seconds: int = Field(
        3600, ge=60, le=6000, description="How long a connection may be silent, in seconds; long prompts think long."
    )

    _callers = field_validator("callers")(_ranges)


class SmokeProof(Settings):
    """`up` ends when the model answered: a Job asks through the router, and its failure is the failure of `up`."""

    kind: Literal["smoke"]


class NoProof(Settings):
    """Nothing is asked, and the outputs say so: for a cluster whose pods are placed but never run."""

    kind: Literal["none"]
    reason: str = Field(min_length=8, description="Why the model can't answer here; the outputs repeat it.")


class EksB300(Stack):
    """EKS with p6-b300.48xlarge from an EC2 Capacity Block; SGLang TP8/DCP8, one replica a node."""

    target: Literal["eks-b300"]
    region: str = Field(
        pattern=r"^[a-z]{2}(-[a-z]+)+-\d$", description="AWS region, for example us-west-2; not a zone."
    )
    model: Model
    weights: Annotated[NvmeWeights | FsxWeights | EfsWeights, Field(discriminator="store")] = Field(
        description="Where engines read the weights from: nvme (fastest, default of the examples), fsx or efs."
    )
    capacity_block: CapacityBlock
    network: Network
    cluster: Cluster = Field(default_factory=Cluster, description="The EKS control plane.")
    nodes: Nodes = Field(default_factory=Nodes, description="The accelerator nodes.")
    gpu_allocation: Literal["dra", "device-plugin"] = Field(
        "dra", description="How pods get GPUs: Dynamic Resource Allocation, or the classic device plugin."
    )
    engine: Engine = Field(default_factory=Engine, description="What differs from the recipe.")
    router: Literal["llm-d", "inference-extension"] = Field(
        "llm-d", description="Which endpoint picker chooses the engine: llm-d's, or the inference extension's."
    )
    gateway: Gateway = Field(default_factory=Gateway, description="Where requests come in.")
    monitoring: Annotated[PrometheusMonitoring | ManagedPrometheusMonitoring, Field(discriminator="kind")] = Field(
        default_factory=lambda: PrometheusMonitoring(kind="prometheus"),
        description="Where metrics and alerts go.",
    )
    proof: Annotated[SmokeProof | NoProof, Field(discriminator="kind")] = Field(
        default_factory=lambda: SmokeProof(kind="smoke"), description="How `up` proves that the model serves."
    )
    tags: dict[str, str] = Field(default_factory=dict, description="Tags of every AWS resource.")

    @model_validator(mode="after")
    def _key_of_region(self) -> Self:
        key = self.weights.kms_key
        if key and key.split(":")[3] != self.region:
            raise problem(
                f"weights.kms_key: {key} is not in region {self.region}",
                why="S3 encrypts a bucket's objects with keys of the bucket's region",
                remedy="Name a key of the region, or a replica there of a multi-region key.",
            )
        return self

    @model_validator(mode="after")
    def _zones_of_region(self) -> Self:
        strangers = [zone for zone in self.network.zones if not zone.startswith(self.region)]
        if strangers:
            raise problem(
                f"network.zones: {', '.join(strangers)} not in region {self.region}",
                why="a VPC lies in one region",
                remedy="Name zones of the region; `aws ec2 describe-availability-zones` lists them.",
            )
        return self
