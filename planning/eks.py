"""The plan of an EKS environment with p6-b300.48xlarge nodes: one SGLang engine a node."""

from __future__ import annotations

import math
from datetime import datetime

from catalog import durations, storage
from catalog.hardware import P6_B300
from catalog.measured import TPU_LOAD_PEAK
from catalog.models import KIMI_K31_PRO, Model
from catalog.models import model as known_model
from catalog.recipes import FORCED_PAGE_TOKENS, SGLANG_B300
from catalog.units import GIB, MB
from planning import cost, startup
from planning.block import BlockNeed, CapacityBlock, Schedule, judge, schedule, unjudged
from planning.findings import Finding
from planning.flags import Flags, environment, merge
from planning.memory import HostMemory, Memory
from planning.parts import Range, seconds_to_read
from planning.plan import Plan
from planning.router import ENGINE_LABEL, RouterPlan, unified_picker
from planning.rules import acknowledged, check
from planning.rules.context import Context, EngineView
from planning.settings.eks import EfsWeights, EksB300, FsxWeights, PrometheusMonitoring
from planning.sglang_memory import DEFAULT_RUNNING, rank_memory
from planning.startup import Startup, step
from planning.weights import checkpoint
from planning.workload import (
    UNIFIED_CHECKS,
    EngineWorkload,
    GpuClaim,
    Group,
    PoolPlan,
    Probe,
    Probes,
    SmokePlan,
    WeightsPlan,
)

SHM_GIB = 32
"""/dev/shm of a TP8 engine (AMD-AGI/Infera@5890f7f, K3 examples)."""
NODE_RESERVE_MILLICORES = 8000
"""Left for the node's own daemons: CNI, CSI, monitoring, DRA."""
EPHEMERAL_GIB = 64
"""Logs and temporary files; images, weights and caches are on the instance store, outside the pod's count."""
SGLANG_PROBE_SECONDS = 30
"""SGLang's /health generates a token and itself gives up after 20 s: a shorter probe would kill a busy engine."""
DRAIN_SECONDS = 30
"""Longer than the router takes to drop an endpoint."""
FINISH_SECONDS = 600
"""A prompt of half a million tokens takes minutes; SGLang itself waits without a limit."""
SMOKE_SECONDS = 900
ROUTER_LABEL = "llm-serving/engine"


def plan_eks(settings: EksB300, *, now: datetime, block: CapacityBlock | None) -> Plan:
    """The plan. block: as AWS describes it, else what the settings declare, else it is judged later."""
    block = block or declared_block(settings)
    flags = merge(SGLANG_B300, served_name=settings.model.name, changes=model_flags(settings) | settings.engine.flags)
    memory = _memory(settings, flags)
    timing = _startup(settings)
    need = block_need(settings, timing)
    engine = _engine(settings, flags, memory, timing)
    router = _router(settings, engine, memory)
    view = EngineView(workload=engine, flags=flags, model=_model(settings), accelerator=P6_B300.accelerator)
    context = Context(settings=settings, engines=(view,), router=router, memory=memory)
    findings = (*check(context), *_block_findings(settings, block, need, now, timing))
    return Plan(
        target=settings.target,
        model=settings.model.name,
        made_at=now,
        memory=memory,
        startup=timing,
        cost=_cost(settings, timing),
        engines=(engine,),
        router=router,
        weights=_weights(settings, timing),
        pool=PoolPlan(
            machine=P6_B300.name,
            nodes=settings.nodes.count,
            # By the block's size, so that growing inside it leaves the launch template, and so the first node, alone.
            efa_cards=P6_B300.efa_cards if max(settings.nodes.count, block.count if block else 1) > 1 else (),
            accelerators_per_node=P6_B300.ranks,
            disk_gib=settings.nodes.disk_gib,
        ),
        smoke=SmokePlan(
            model=engine.served_name,
            checks=UNIFIED_CHECKS,
            over_long_tokens=engine.context_tokens + engine.block_tokens,
            timeout_seconds=SMOKE_SECONDS,
        ),
        block=block,
        schedule=_schedule(block, need, now, timing),
        findings=acknowledged(findings, settings.acknowledge),
    )


def model_flags(settings: EksB300) -> dict[str, str]:
    """The recipe's flags that the settings' model decides."""
    return {"model-path": settings.model.repo, "revision": settings.model.revision}


def declared_block(settings: EksB300) -> CapacityBlock | None:
    """The block as the settings declare it, or None."""
    facts = settings.capacity_block.facts
    if facts is None:
        return None
    return CapacityBlock(reservation=settings.capacity_block.reservation, **facts.model_dump())


SERVICE = "smoke check"
BLOCK_BILLED = "block"
"""What `Step.billed` says while accelerators are paid for."""


def block_need(settings: EksB300, timing: Startup) -> BlockNeed:
    """What the environment asks of a capacity block."""
    return BlockNeed(
        instance_type=P6_B300.name,
        nodes=settings.nodes.count,
        zones=settings.network.zones,
        region=settings.region,
        service_seconds=timing.accelerated_seconds,
        shared_store=settings.weights.store,
    )


def before_block_seconds(timing: Startup) -> Range:
    """Seconds of `up` until everything is done that needs no accelerators, the filling of a shared store among it."""
    ends = [startup.path_seconds(timing.steps, until=step.name) for step in timing.steps if step.billed != BLOCK_BILLED]
    return Range(low=max(end.low for end in ends), high=max(end.high for end in ends))


def _block_findings(
    settings: EksB300, block: CapacityBlock | None, need: BlockNeed, now: datetime, timing: Startup
) -> tuple[Finding, ...]:
    if block is None:
        return (unjudged(settings.capacity_block.reservation),)
    return judge(block, need, now=now, before_block=before_block_seconds(timing))


def _schedule(block: CapacityBlock | None, need: BlockNeed, now: datetime, timing: Startup) -> Schedule | None:
    return schedule(block, need, before_block=before_block_seconds(timing), now=now) if block else None


def _model(settings: EksB300) -> Model:
    """The model's row; for one that nobody knows the recipe's, and a finding says so."""
    return known_model(settings.model.repo) or KIMI_K31_PRO


def _memory(settings: EksB300, flags: Flags) -> Memory:
    model = _model(settings)
    rank = rank_memory(model, P6_B300.accelerator, flags)
    # Without a measured peak on this machine: the TPU host's, which has as many ranks.
    shares = {
        "load peak of the engine (measured on a TPU host with as many ranks)": TPU_LOAD_PEAK.value,
        "/dev/shm": SHM_GIB * GIB,
        "page cache for the checkpoint, so that a restart reads from memory": model.checkpoint_gib * GIB,
    }
    host = HostMemory.of(
        machine=P6_B300.name, role="unified", shares=shares, usable_bytes=P6_B300.usable_bytes, assumed=False
    )
    return Memory(
        checkpoint_gib=checkpoint(model).total / GIB - checkpoint(model).other / GIB,
        published_gib=model.checkpoint_gib,
        ranks=(rank,),
        hosts=(host,),
    )


def _size(settings: EksB300) -> float:
    return _model(settings).checkpoint_gib * GIB


def hydrate_and_read(settings: EksB300) -> tuple[Range, Range]:
    """Seconds from the bucket to the store, and from the store to the engines."""
    size, nodes, weights = _size(settings), settings.nodes.count, settings.weights
    if isinstance(weights, FsxWeights):
        disk = storage.fsx_read(tier=weights.mbps_per_tib, storage_gib=weights.storage_gib)
        fill = startup.read(size, storage.FSX_IMPORT)
        return Range(low=max(fill.low, size / disk.slow), high=max(fill.high, size / disk.slow)), startup.read(
            size, disk, readers=nodes
        )
    if isinstance(weights, EfsWeights):
        return startup.read(size, storage.EFS_FILL), startup.read(size, storage.EFS_READ, readers=nodes)
    return startup.read(size, storage.S3_TO_NVME, readers=nodes), startup.read(size, storage.NVME_READ, readers=nodes)


def _startup(settings: EksB300) -> Startup:
    size = _size(settings)
    rate = settings.weights.staging.hub_mbps * MB
    fill, load = hydrate_and_read(settings)
    on_node = settings.weights.store == "nvme"
    hydrate_after = ("staging", "accelerator nodes") if on_node else ("staging",)
    hydrate_source = {"nvme": storage.S3_TO_NVME, "fsx": storage.FSX_IMPORT, "efs": storage.EFS_FILL}
    read_source = {"nvme": storage.NVME_READ.source, "efs": storage.EFS_READ.source}
    if isinstance(settings.weights, FsxWeights):
        read_source["fsx"] = storage.fsx_read(
            tier=settings.weights.mbps_per_tib, storage_gib=settings.weights.storage_gib
        ).source
    store = settings.weights.store
    steps = (
        step("network and cluster", durations.EKS_CLUSTER, after=(), billed="cluster, system nodes"),
        step("platform", durations.PLATFORM, after=("network and cluster",), billed="cluster, system nodes"),
        step(
            "staging",
            seconds_to_read(size, slow=rate, fast=rate),
            after=("network and cluster",),
            billed="cluster, system nodes",
        ),
        step("accelerator nodes", durations.EKS_ACCELERATOR_NODE, after=("platform", "staging"), billed=BLOCK_BILLED),
        step(
            "weights to the engines' store",
            fill,
            after=hydrate_after,
            billed=BLOCK_BILLED if on_node else "cluster, system nodes, file system",
            source=hydrate_source[store].source,
        ),
        step("image pull", durations.IMAGE_PULL, after=("accelerator nodes",), billed=BLOCK_BILLED),
        step(
            "loading the weights",
            load,
            after=("weights to the engines' store", "image pull"),
            billed=BLOCK_BILLED,
            source=read_source[store],
        ),
        step("compilation and graphs", durations.COMPILE_FIRST, after=("loading the weights",), billed=BLOCK_BILLED),
        step(SERVICE, durations.SMOKE, after=("compilation and graphs",), billed=BLOCK_BILLED),
    )
    done = frozenset({"network and cluster", "platform", "staging"})
    if not on_node:
        done |= {"weights to the engines' store"}
    compile_first = Range(low=durations.COMPILE_FIRST.fast, high=durations.COMPILE_FIRST.slow)
    cached = Range(low=durations.COMPILE_CACHED.fast, high=durations.COMPILE_CACHED.slow)
    budget = startup.startup_budget(read_seconds=load, compile_seconds=compile_first)
    stage = seconds_to_read(size, slow=rate, fast=rate).high
    return Startup(
        steps=steps,
        first_token_seconds=startup.path_seconds(steps, until=SERVICE),
        accelerated_seconds=startup.path_seconds(steps, until=SERVICE, since=done),
        restart_seconds=load + cached,
        limits=startup.Limits(
            startup_period_seconds=startup.PROBE_PERIOD_SECONDS,
            startup_failures=budget // startup.PROBE_PERIOD_SECONDS,
            engine_ready_seconds=startup.rounded_up(
                (durations.IMAGE_PULL.slow + fill.high * on_node) * startup.HEADROOM + budget
            ),
            stage_seconds=startup.rounded_up(stage * startup.STAGING_HEADROOM),
            hydrate_seconds=startup.rounded_up(fill.high * startup.HEADROOM),
            router_ready_seconds=startup.rounded_up(durations.PLATFORM.slow),
            smoke_seconds=SMOKE_SECONDS,
        ),
    )


def _engine(settings: EksB300, flags: Flags, memory: Memory, timing: Startup) -> EngineWorkload:
    port = flags.whole("port", SGLANG_B300.port)
    limits = timing.limits
    health = Probe(
        path="/health",
        port=port,
        period_seconds=SGLANG_PROBE_SECONDS,
        timeout_seconds=SGLANG_PROBE_SECONDS,
        failure_threshold=3,
    )
    allocatable = P6_B300.allocatable_millicpu or 0
    return EngineWorkload(
        role="unified",
        engine="sglang",
        image=settings.engine.image or SGLANG_B300.image,
        command=SGLANG_B300.command,
        arguments=flags.argv(),
        env=environment(SGLANG_B300, settings.engine.env, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1"),
        port=port,
        ports=(port,),
        group=Group(replicas=settings.nodes.count, pods=1),
        claim=GpuClaim(
            device_class="gpu.nvidia.com",
            count=P6_B300.ranks,
            ranks=P6_B300.ranks,
            selector=SGLANG_B300.selector if settings.gpu_allocation == "dra" else "",
        ),
        probes=Probes(
            startup=Probe(
                path="/health",
                port=port,
                period_seconds=limits.startup_period_seconds,
                timeout_seconds=SGLANG_PROBE_SECONDS,
                failure_threshold=limits.startup_failures,
            ),
            liveness=health,
            readiness=Probe(path="/v1/models", port=port, period_seconds=10, timeout_seconds=5, failure_threshold=3),
        ),
        cpu_millicores=(allocatable - NODE_RESERVE_MILLICORES) // 1000 * 1000,
        memory_gib=math.ceil(memory.hosts[0].total_gib),
        shm_gib=SHM_GIB,
        ephemeral_gib=EPHEMERAL_GIB,
        ready_seconds=limits.engine_ready_seconds,
        drain_seconds=DRAIN_SECONDS,
        grace_seconds=DRAIN_SECONDS + FINISH_SECONDS,
        labels={ROUTER_LABEL: "unified", **dict.fromkeys(ENGINE_LABEL.values(), "sglang")},
        served_name=flags.text("served-model-name", settings.model.name),
        context_tokens=memory.ranks[0].context_tokens,
        running_requests=flags.whole("max-running-requests", DEFAULT_RUNNING),
        block_tokens=flags.whole("page-size", FORCED_PAGE_TOKENS),
    )


def _router(settings: EksB300, engine: EngineWorkload, memory: Memory) -> RouterPlan:
    lru = max(1, int(memory.ranks[0].pool_tokens.low) // max(1, engine.block_tokens))
    return RouterPlan(
        flavour=settings.router,
        model=engine.served_name,
        engine="sglang",
        target_ports=(engine.port,),
        match_labels={ROUTER_LABEL: engine.role},
        block_tokens=engine.block_tokens,
        max_prefix_tokens=engine.context_tokens,
        lru_blocks=lru,
        picker=unified_picker(
            flavour=settings.router,
            block_tokens=engine.block_tokens,
            max_prefix_tokens=engine.context_tokens,
            lru_blocks=lru,
        ),
    )


def _weights(settings: EksB300, timing: Startup) -> WeightsPlan:
    return WeightsPlan(
        repo=settings.model.repo,
        revision=settings.model.revision,
        prefix=f"{settings.model.repo}/{settings.model.revision}",
        checkpoint_bytes=round(_size(settings)),
        store=settings.weights.store,
        parallel_files=settings.weights.staging.parallel_files,
        stage_seconds=timing.limits.stage_seconds,
        hydrate_seconds=timing.limits.hydrate_seconds,
    )


def _cost(settings: EksB300, timing: Startup) -> cost.Cost:
    region, nodes, system = settings.region, settings.nodes.count, settings.cluster.system_nodes
    tb = _size(settings) / 1e12
    lines = [
        cost.unknown(
            "accelerators",
            f"{nodes} × {P6_B300.name} from the capacity block",
            look="capacity block",
            note="paid up front, whether used or not; on-demand list price: " + cost.elsewhere(P6_B300.name, region),
        ),
        cost.line("system nodes", item=system.instance_type, region=region, count=system.count, look="ec2"),
        cost.unknown("control plane", "1 EKS cluster", look="eks"),
        cost.unknown("weights in S3", f"{tb:.2f} TB", look="s3"),
        cost.unknown("NAT gateway, endpoints, load balancer", f"{len(settings.network.zones)} zones", look="network"),
    ]
    if isinstance(settings.weights, FsxWeights):
        tier = settings.weights.mbps_per_tib
        item = f"fsx-lustre-{tier}"
        lines.append(
            cost.line(
                "FSx for Lustre",
                item=item,
                region=region,
                count=settings.weights.storage_gib,
                unit=f"GiB at {tier} MB/s/TiB",
                look="fsx",
            )
        )
    if isinstance(settings.weights, EfsWeights):
        lines.append(cost.unknown("EFS", f"{tb:.2f} TB, elastic throughput", look="efs", note="every read is billed"))
    if not isinstance(settings.monitoring, PrometheusMonitoring):
        lines.append(cost.unknown("managed Prometheus", "samples and collector", look="amp"))
    return cost.total(tuple(lines), accelerators=nodes * P6_B300.ranks, seconds=timing.accelerated_seconds)
