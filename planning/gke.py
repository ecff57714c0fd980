"""What the plans of both GKE environments share: how long `up` takes, what it costs, where the weights are."""

from __future__ import annotations

from catalog import durations, storage
from catalog.durations import Duration
from catalog.models import KIMI_K31_PRO, Model
from catalog.models import model as known_model
from catalog.units import GIB, MB
from planning import cost, startup
from planning.parts import Range, seconds_to_read
from planning.settings.gke import Gke
from planning.startup import Limits, Startup, step
from planning.workload import WeightsPlan

SMOKE = "smoke check"
SMOKE_SECONDS = 900
BOOT_DISK_GIB = 100
"""Hyperdisk Balanced, as the cluster-toolkit's A4X Max blueprint has it."""


def served_model(settings: Gke) -> Model:
    """The model's row; for one that nobody knows the recipe's, and a finding says so."""
    return known_model(settings.model.repo) or KIMI_K31_PRO


def size_bytes(settings: Gke) -> float:
    """Bytes of the checkpoint."""
    return served_model(settings).checkpoint_gib * GIB


def startup_plan(settings: Gke, *, engines: int, nodes: int, compilation: Duration) -> Startup:
    """Steps and limits. engines: that read the volume at once if each group reads once; nodes: if every node reads all."""
    size, weights = size_bytes(settings), settings.weights
    volume = storage.hyperdisk_ml(weights.throughput_mibps)
    load = Range(low=engines * size / volume.fast, high=nodes * size / volume.slow)
    rate = weights.staging.hub_mbps * MB
    fill = startup.read(size, storage.POPULATOR)
    early = weights.binding == "immediate"
    cluster, accelerators = "cluster, system nodes", "accelerators"
    pools = step(
        "accelerator nodes",
        durations.GKE_ACCELERATOR_POOL,
        after=("platform", "weights on the volume") if early else ("platform", "staging"),
        billed=accelerators,
    )
    hydrate = step(
        "weights on the volume",
        fill,
        after=("staging",) if early else ("staging", "accelerator nodes"),
        billed=cluster if early else accelerators,
        source=storage.POPULATOR.source,
    )
    steps = (
        step("network and cluster", durations.GKE_CLUSTER, after=(), billed=cluster),
        step("platform", durations.PLATFORM, after=("network and cluster",), billed=cluster),
        step("staging", seconds_to_read(size, slow=rate, fast=rate), after=("network and cluster",), billed=cluster),
        *((hydrate, pools) if early else (pools, hydrate)),
        step("image pull", durations.IMAGE_PULL, after=("accelerator nodes",), billed=accelerators),
        step(
            "loading the weights",
            load,
            after=("weights on the volume", "image pull"),
            billed=accelerators,
            source=volume.source,
        ),
        step("compilation and graphs", compilation, after=("loading the weights",), billed=accelerators),
        step(SMOKE, durations.SMOKE, after=("compilation and graphs",), billed=accelerators),
    )
    done = frozenset({"network and cluster", "platform", "staging"} | ({"weights on the volume"} if early else set()))
    compile_seconds = Range(low=compilation.fast, high=compilation.slow)
    budget = startup.startup_budget(read_seconds=load, compile_seconds=compile_seconds)
    cached = Range(low=durations.COMPILE_CACHED.fast, high=durations.COMPILE_CACHED.slow)
    return Startup(
        steps=steps,
        first_token_seconds=startup.path_seconds(steps, until=SMOKE),
        accelerated_seconds=startup.path_seconds(steps, until=SMOKE, since=done),
        restart_seconds=load + cached,
        limits=Limits(
            startup_period_seconds=startup.PROBE_PERIOD_SECONDS,
            startup_failures=budget // startup.PROBE_PERIOD_SECONDS,
            engine_ready_seconds=startup.rounded_up(durations.IMAGE_PULL.slow * startup.HEADROOM + budget),
            stage_seconds=startup.rounded_up(size / rate * startup.STAGING_HEADROOM),
            hydrate_seconds=startup.rounded_up(fill.high * startup.HEADROOM),
            router_ready_seconds=startup.rounded_up(durations.PLATFORM.slow),
            smoke_seconds=SMOKE_SECONDS,
        ),
    )


def weights_plan(settings: Gke, timing: Startup) -> WeightsPlan:
    """The copy that engines read."""
    return WeightsPlan(
        repo=settings.model.repo,
        revision=settings.model.revision,
        prefix=f"{settings.model.repo}/{settings.model.revision}",
        checkpoint_bytes=round(size_bytes(settings)),
        store="hyperdisk-ml",
        parallel_files=settings.weights.staging.parallel_files,
        stage_seconds=timing.limits.stage_seconds,
        hydrate_seconds=timing.limits.hydrate_seconds,
    )


def cost_plan(settings: Gke, *, machines: str, accelerators: int, look: str, seconds: Range) -> cost.Cost:
    """No price of these machines is public; the groups are listed all the same."""
    system = settings.cluster.system_nodes
    lines = (
        cost.unknown("accelerators", machines, look=look, note="reserved: paid for whether used or not"),
        cost.unknown("system nodes", f"{system.count} × {system.machine_type}", look="gce"),
        cost.unknown("control plane", "1 GKE cluster", look="gke"),
        cost.unknown("weights in Cloud Storage", f"{size_bytes(settings) / 1e12:.2f} TB", look="gcs"),
        cost.unknown(
            "Hyperdisk ML",
            f"{settings.weights.size_gib} GiB at {settings.weights.throughput_mibps} MiB/s",
            look="hyperdisk",
        ),
    )
    return cost.total(lines, accelerators=accelerators, seconds=seconds)
