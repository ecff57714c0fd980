"""What GKE, A4X Max and TPU 7x get wrong: versions, domains, volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog.hardware import NVLINK_DOMAIN_NODES
from catalog.measured import TPU_CONTEXT_LIMIT
from catalog.platforms import GKE_A4X_MAX_FLOORS, GKE_BAD_VERSIONS, GKE_TPU7X_FLOOR, HYPERDISK_ML_QUOTA_MIBPS
from planning.findings import Severity
from planning.rules.context import Context
from planning.rules.rule import Found, Rules
from planning.settings.gke import Gke, GkeA4xMax, GkeTpu7x, MooncakeTier

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("gcp-gke sheet")

EVERYWHERE = "0.0.0.0/0"


def _gke(context: Context) -> Iterator[Gke]:
    if isinstance(context.settings, Gke):
        yield context.settings


def _a4x(context: Context) -> Iterator[GkeA4xMax]:
    if isinstance(context.settings, GkeA4xMax):
        yield context.settings


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _text(numbers: tuple[int, ...]) -> str:
    return "{}.{}.{}-gke.{}".format(*numbers)


@RULES.stack(
    "gke-version-bad",
    ERROR,
    why="operators report nodes of this version as broken",
    remedy="Pin another version",
    source="public operator notes on GB300 at GKE, 2026-07",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _a4x(context):
        if settings.cluster.version in GKE_BAD_VERSIONS:
            yield Found("a broken node version", settings.cluster.version, GKE_BAD_VERSIONS[settings.cluster.version])


@RULES.stack(
    "gke-version-floor",
    ERROR,
    why="older versions don't know the machine",
    remedy="Use the floor or newer; `gcloud container get-server-config` lists what is on offer",
    source="docs of A4X Max (quoted in NVIDIA/aicr) and of TPU Ironwood in GKE",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        version = _numbers(settings.cluster.version)
        floors = GKE_A4X_MAX_FLOORS if isinstance(settings, GkeA4xMax) else (GKE_TPU7X_FLOOR,)
        same_minor = [floor for floor in floors if floor[:2] == version[:2]]
        floor = same_minor[0] if same_minor else floors[0]
        if version < floor:
            yield Found(
                "the GKE version is too old for the machine", settings.cluster.version, f"Use {_text(floor)} or newer"
            )


@RULES.stack(
    "nvlink-domain",
    ERROR,
    why="prefill and decode exchange memory over NVLink, and one reservation sub-block is one domain",
    remedy="Use fewer or smaller engines; a second domain is a second stack",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _a4x(context):
        shapes = (settings.prefill_shape, settings.decode_shape)
        nodes = sum(shape.replicas * shape.nodes for shape in shapes)
        if nodes > NVLINK_DOMAIN_NODES:
            yield Found(f"more than the {NVLINK_DOMAIN_NODES} nodes of one NVLink domain", nodes)


@RULES.stack(
    "volume-size",
    ERROR,
    why="the weights don't fit on the volume",
    remedy="Use 2000",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        if settings.weights.size_gib < context.memory.published_gib * 1.05:
            yield Found("weights.size_gib is smaller than the checkpoint", f"{settings.weights.size_gib} GiB")


@RULES.stack(
    "volume-throughput-quota",
    WARNING,
    why="the regional quota HDML_TOTAL_THROUGHPUT was 30,720 MiB/s where somebody looked, and the volume would not be made",
    remedy="Ask for more quota first, or use up to 24576",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        if settings.weights.throughput_mibps > HYPERDISK_ML_QUOTA_MIBPS:
            yield Found("more throughput than the usual quota", f"{settings.weights.throughput_mibps} MiB/s")


@RULES.stack(
    "volume-readers",
    WARNING,
    why="every node may read everything, and all share the volume: the start takes longer than an hour",
    remedy="Raise weights.throughput_mibps; it can't be raised later",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        nodes = sum(view.workload.pods for view in context.engines)
        seconds = nodes * context.memory.published_gib * 1024 / settings.weights.throughput_mibps
        if seconds > 3600:
            yield Found(
                "the volume is slow for so many readers", f"{nodes} nodes, {settings.weights.throughput_mibps} MiB/s"
            )


@RULES.stack(
    "volume-binding",
    WARNING,
    why="the copy starts when the first engine is scheduled: the accelerators wait two hours for it",
    remedy="Use weights.binding: immediate",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        if settings.weights.binding == "first-consumer":
            yield Found("the volume is filled while accelerators wait", settings.weights.binding)


@RULES.stack(
    "gke-callers",
    ERROR,
    why="everybody could try their luck with the cluster's API server",
    remedy="Name your own ranges in cluster.callers, or none: the DNS endpoint checks IAM",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        if EVERYWHERE in settings.cluster.callers:
            yield Found("the API server is open to the whole internet", EVERYWHERE)


@RULES.stack(
    "tier-orchestration",
    NOTE,
    why="the guide runs Mooncake under LeaderWorkerSets, the blog native offloading under a DisaggregatedSet",
    remedy="Nothing to do; the mix is not shown by either",
    source="llm-d guide and blog",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _a4x(context):
        mooncake, plain = isinstance(settings.tier, MooncakeTier), settings.orchestration == "leader-worker-set"
        if mooncake != plain:
            yield Found("a mix of two published designs", f"{settings.tier.kind}, {settings.orchestration}")


@RULES.stack(
    "tpu-context",
    ERROR,
    why="the batch-64 decode kernel's SMEM caps the context",
    remedy="Use 491520",
    source="llm-d guide kimi-k3-1",
)
def _(context: Context) -> Iterator[Found]:
    if isinstance(context.settings, GkeTpu7x):
        for view in context.engines:
            if view.workload.context_tokens > TPU_CONTEXT_LIMIT.value:
                yield Found("the context is longer than the TPU kernel allows", f"{view.workload.context_tokens:,}")


@RULES.stack(
    "tpu-pool-unknown",
    WARNING,
    why="the pool was measured with the guide's tp-size, page-size, KV format and context; nobody knows what caps it",
    remedy="Read max_total_num_tokens in the engine's log and set the router's capacity to it, or keep the guide's flags",
)
def _(context: Context) -> Iterator[Found]:
    if isinstance(context.settings, GkeTpu7x):
        for rank in context.memory.ranks:
            if rank.measured_tokens is None:
                yield Found("nothing is known about the pool with these flags", f"{rank.role}")


@RULES.stack(
    "planned-only",
    WARNING,
    why="its components are not built yet",
    remedy="Use the plan, its manifests' values and its findings; `pulumi up` refuses this target",
)
def _(context: Context) -> Iterator[Found]:
    for settings in _gke(context):
        yield Found("this environment can be planned, not yet made", getattr(settings, "target", ""))
