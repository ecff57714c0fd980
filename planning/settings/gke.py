"""The schemas of GKE environments: A4X Max (GB300, vLLM, prefill and decode apart) and TPU 7x (SGLang)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from catalog.recipes import DONOR_GB, SEGMENT_GB
from catalog.storage import HYPERDISK_ML_MIBPS
from planning.settings.base import Engine, Model, Name, Settings, Stack, Staging, how, problem

Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+-[a-z]$", description="A zone, for example us-central1-c.")]
GkeVersion = Annotated[
    str,
    Field(
        pattern=r"^1\.\d{2}\.\d+-gke\.\d+$",
        description="Exact GKE version of control plane and nodes, for example 1.35.0-gke.2745000.",
        json_schema_extra=how("`gcloud container get-server-config --location REGION` lists validNodeVersions."),
    ),
]
IMAGE_HOW = how(
    "`crane digest NAME:TAG` prints the digest; write NAME:TAG@sha256:DIGEST. Nobody publishes one for this tag."
)


class GkeSystemNodes(Settings):
    """Nodes without accelerators: platform, router, monitoring, and the staging of the weights."""

    machine_type: str = Field(
        "e2-standard-16", pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)+$", description="Compute Engine machine type, x86_64."
    )
    count: int = Field(3, ge=2, le=20, description="How many; two or more, so that one may fail.")


class GkeCluster(Settings):
    """The GKE control plane (Standard mode)."""

    name: Name = Field("llm-serving", description="Name of the cluster; other names are derived from it.")
    version: GkeVersion
    channel: Literal["RAPID", "REGULAR", "STABLE"] = Field("REGULAR", description="Release channel.")
    callers: tuple[str, ...] = Field(
        (), description="Ranges that may call the API server; empty: IAM-gated DNS endpoint only."
    )
    system_nodes: GkeSystemNodes = Field(
        default_factory=GkeSystemNodes,
        description="Nodes without accelerators.",
    )


class HyperdiskWeights(Settings):
    """Bucket → Volume Populator → one Hyperdisk ML volume that every engine mounts read-only."""

    bucket: str = Field(
        pattern=r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$",
        description="Name of the bucket that is made in the cluster's region. Names are global.",
        json_schema_extra=how("Choose a name that nobody has yet."),
    )
    keep: bool = Field(True, description="Keep the bucket and the weights in it when the stack is destroyed.")
    size_gib: int = Field(2000, ge=4, le=65536, description="Size of the volume in GiB.")
    throughput_mibps: int = Field(
        HYPERDISK_ML_MIBPS, ge=400, le=2_097_152, description="Provisioned throughput in MiB/s, shared by all readers."
    )
    binding: Literal["immediate", "first-consumer"] = Field(
        "immediate",
        description="When the volume is filled: as soon as it is made, or when the first engine is scheduled, with the "
        "accelerators waiting.",
    )
    staging: Staging = Field(
        default_factory=Staging,
        description="How the weights get into the bucket.",
    )


class ReservedBlock(Settings):
    """A4X Max capacity: one sub-block of a reservation, which is one NVLink domain."""

    reservation: str = Field(
        pattern=r"^(projects/[\w:.-]+/reservations/)?[\w-]+/reservationBlocks/[\w-]+/reservationSubBlocks/[\w-]+$",
        description="[projects/P/reservations/]R/reservationBlocks/B/reservationSubBlocks/S.",
        json_schema_extra=how(
            "`gcloud compute reservations sub-blocks list RESERVATION --block-name BLOCK --zone ZONE` lists them."
        ),
    )


class TpuReservation(Settings):
    """TPU capacity out of a reservation."""

    reservation: str = Field(
        pattern=r"^(projects/[\w:.-]+/reservations/)?[\w-]+$",
        description="Name of the reservation, or projects/P/reservations/R of another project.",
        json_schema_extra=how("`gcloud compute reservations list --filter zone:ZONE` lists them."),
    )


class Gke(Stack):
    """What both GKE environments have."""

    project: str = Field(
        pattern=r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$",
        description="Id of the Google Cloud project (not its number or name).",
        json_schema_extra=how("`gcloud config get-value project` prints it."),
    )
    region: str = Field(pattern=r"^[a-z]+-[a-z]+\d+$", description="Region, for example us-central1.")
    zone: Zone
    model: Model
    weights: HyperdiskWeights
    cluster: GkeCluster

    @model_validator(mode="after")
    def _zone_of_region(self) -> Self:
        if self.zone.rpartition("-")[0] != self.region:
            raise problem(
                f"zone {self.zone} is not in region {self.region}",
                why="volume, bucket and accelerators must be together",
                remedy="Name a zone of the region.",
            )
        return self


class Shape(Settings):
    """How many engines of a role, and on how many nodes each."""

    replicas: int = Field(ge=1, le=16, description="Engines of this role.")
    nodes: int = Field(ge=1, le=18, description="Nodes of one engine; four GPUs each.")


class MooncakeTier(Settings):
    """KV cache shared over RDMA: a segment of host memory a rank, and donors if you want."""

    kind: Literal["mooncake"]
    segment_gb: int = Field(
        SEGMENT_GB, ge=1, description="Segment of each rank, in the engine's GB, which are 2^30 bytes."
    )
    donors: bool = Field(False, description="Also run donor pods on the accelerator nodes.")
    donor_gb: int = Field(DONOR_GB, ge=1, description="Segment of a donor pod, in GB.")


class NativeTier(Settings):
    """vLLM's own offloading into host memory."""

    kind: Literal["native"]
    gib_per_rank: int = Field(100, ge=1, description="Host memory of each rank, in GiB.")


class GkeA4xMax(Gke):
    """GKE with a4x-maxgpu-4g-metal: vLLM, three prefill engines and one decode engine in one NVLink domain."""

    target: Literal["gke-a4x-max"]
    capacity: ReservedBlock
    image: str = Field(description="vLLM's K3.1 build for arm64, with its digest.", json_schema_extra=IMAGE_HOW)
    prefill_shape: Shape = Field(
        default_factory=lambda: Shape(replicas=3, nodes=2), description="Prefill: the guide has 3 engines of 2 nodes."
    )
    decode_shape: Shape = Field(
        default_factory=lambda: Shape(replicas=1, nodes=4), description="Decode: the guide has 1 engine of 4 nodes."
    )
    tier: Annotated[MooncakeTier | NativeTier, Field(discriminator="kind")] = Field(
        default_factory=lambda: MooncakeTier(kind="mooncake"),
        description="Where the KV cache spills to: mooncake (guide) or native offloading (blog).",
    )
    orchestration: Literal["leader-worker-set", "disaggregated-set"] = Field(
        "leader-worker-set", description="One LeaderWorkerSet a role (guide), or one DisaggregatedSet (blog)."
    )
    quantise_projections: bool = Field(
        True, description="Decode keeps attention, shared experts and latent projections in MXFP8, as the guide does."
    )
    prefill: Engine = Field(default_factory=Engine, description="What differs from the recipe on prefill.")
    decode: Engine = Field(default_factory=Engine, description="What differs from the recipe on decode.")


class GkeTpu7x(Gke):
    """GKE with tpu7x 2x2x4 slices: SGLang, one engine a slice of four hosts."""

    target: Literal["gke-tpu7x"]
    capacity: TpuReservation
    image: str = Field(description="SGLang's K3.1 build for TPU, with its digest.", json_schema_extra=IMAGE_HOW)
    replicas: int = Field(2, ge=1, le=512, description="Slices of 2x2x4; each is one engine and one node pool.")
    engine: Engine = Field(default_factory=Engine, description="What differs from the recipe.")
