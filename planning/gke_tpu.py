"""The plan of a GKE environment with tpu7x slices: one SGLang engine a 2x2x4 slice."""

from __future__ import annotations

import math
from datetime import datetime

from catalog import durations
from catalog.hardware import TPU7X_HOST
from catalog.measured import TPU_HBM_POOL, TPU_LOAD_PEAK, TPU_PREFILL_RATE
from catalog.recipes import SGLANG_TPU
from catalog.units import GIB
from planning import gke
from planning.flags import Flags, environment, merge
from planning.memory import HostMemory, Memory
from planning.plan import Plan
from planning.router import ENGINE_LABEL, RouterPlan, affinity_picker
from planning.rules import acknowledged, check
from planning.rules.context import Context, EngineView
from planning.settings.gke import GkeTpu7x
from planning.sglang_memory import DEFAULT_RUNNING, tpu_memory
from planning.startup import Startup
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
)

HOSTS = 4
"""Of a 2x2x4 slice: 16 chips, 4 a host."""
CHIPS_PER_HOST = 4
SHM_GIB = 32
PROBE_SECONDS = 30
DRAIN_SECONDS, FINISH_SECONDS = 30, 600
RESERVE_CPU_MILLICORES = 16_000
EPHEMERAL_GIB = 64
CHECKS = (*(check for check in UNIFIED_CHECKS if check != "tool-call"), "host-tier-correctness")
"""The guide: tool calls don't work with grammar-backend none. The host tier must answer as the device does (HiCache bugs)."""
MEASURED_FLAGS = ("tp-size", "page-size", "kv-cache-dtype", "context-length")


def plan_tpu(settings: GkeTpu7x, *, now: datetime) -> Plan:
    """The plan."""
    flags = merge(SGLANG_TPU, served_name=settings.model.name, changes=settings.engine.flags)
    memory = _memory(settings, flags)
    nodes = settings.replicas * HOSTS
    timing = gke.startup_plan(settings, engines=settings.replicas, nodes=nodes, compilation=durations.COMPILE_TPU)
    engine = _engine(settings, flags, memory, timing)
    router = _router(engine, memory)
    view = EngineView(
        workload=engine, flags=flags, model=gke.served_model(settings), accelerator=TPU7X_HOST.accelerator
    )
    context = Context(settings=settings, engines=(view,), router=router, memory=memory)
    chips = nodes * CHIPS_PER_HOST
    return Plan(
        target=settings.target,
        model=settings.model.name,
        made_at=now,
        memory=memory,
        startup=timing,
        cost=gke.cost_plan(
            settings,
            machines=f"{nodes} × {TPU7X_HOST.name} ({settings.replicas} slices of 2x2x4)",
            accelerators=chips,
            look="tpu",
            seconds=timing.accelerated_seconds,
        ),
        engines=(engine,),
        router=router,
        weights=gke.weights_plan(settings, timing),
        pool=PoolPlan(
            machine=TPU7X_HOST.name,
            nodes=nodes,
            efa_cards=(),
            accelerators_per_node=CHIPS_PER_HOST,
            disk_gib=gke.BOOT_DISK_GIB,
        ),
        smoke=SmokePlan(
            model=engine.served_name,
            checks=CHECKS,
            over_long_tokens=engine.context_tokens + engine.block_tokens,
            timeout_seconds=gke.SMOKE_SECONDS,
        ),
        block=None,
        schedule=None,
        findings=acknowledged(check(context), settings.acknowledge),
    )


def measured_pool(flags: Flags) -> int | None:
    """The measured pool when these flags are those of the measured run, as far as they decide about memory."""
    recipe = merge(SGLANG_TPU, served_name="", changes={})
    same = all(flags.values.get(name) == recipe.values.get(name) for name in MEASURED_FLAGS)
    return TPU_HBM_POOL.value if same else None


def _memory(settings: GkeTpu7x, flags: Flags) -> Memory:
    model = gke.served_model(settings)
    rank, tiers, host_bytes = tpu_memory(model, TPU7X_HOST.accelerator, flags, hbm_tokens=measured_pool(flags))
    host = HostMemory.of(
        machine=TPU7X_HOST.name,
        role="unified",
        shares={
            "load peak of the engine (measured)": TPU_LOAD_PEAK.value,
            f"HiCache host pool, {TPU7X_HOST.ranks} ranks": host_bytes * TPU7X_HOST.ranks,
        },
        usable_bytes=TPU7X_HOST.usable_bytes,
        assumed=TPU7X_HOST.allocatable_bytes is None,
    )
    derived = checkpoint(model)
    return Memory(
        checkpoint_gib=(derived.total - derived.other) / GIB,
        published_gib=model.checkpoint_gib,
        ranks=(rank,),
        hosts=(host,),
        tiers=tiers,
    )


def _engine(settings: GkeTpu7x, flags: Flags, memory: Memory, timing: Startup) -> EngineWorkload:
    port, limits = flags.whole("port", SGLANG_TPU.port), timing.limits
    return EngineWorkload(
        role="unified",
        engine="sglang",
        image=settings.engine.image or settings.image,
        command=SGLANG_TPU.command,
        arguments=flags.argv(),
        env=environment(SGLANG_TPU, settings.engine.env, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1"),
        port=port,
        ports=(port,),
        group=Group(replicas=settings.replicas, pods=HOSTS),
        claim=GpuClaim(device_class="google.com/tpu", count=CHIPS_PER_HOST, ranks=TPU7X_HOST.ranks, selector=""),
        probes=Probes(
            startup=Probe(
                path="/health",
                port=port,
                period_seconds=limits.startup_period_seconds,
                timeout_seconds=PROBE_SECONDS,
                failure_threshold=limits.startup_failures,
            ),
            liveness=Probe(
                path="/health", port=port, period_seconds=30, timeout_seconds=PROBE_SECONDS, failure_threshold=3
            ),
            readiness=Probe(path="/v1/models", port=port, period_seconds=10, timeout_seconds=5, failure_threshold=3),
        ),
        cpu_millicores=TPU7X_HOST.vcpus * 1000 - RESERVE_CPU_MILLICORES,
        memory_gib=math.ceil(memory.hosts[0].total_gib) + SHM_GIB,
        shm_gib=SHM_GIB,
        ephemeral_gib=EPHEMERAL_GIB,
        ready_seconds=limits.engine_ready_seconds,
        drain_seconds=DRAIN_SECONDS,
        grace_seconds=DRAIN_SECONDS + FINISH_SECONDS,
        labels={"llm-serving/engine": "unified", **dict.fromkeys(ENGINE_LABEL.values(), "sglang")},
        served_name=flags.text("served-model-name", settings.model.name),
        context_tokens=memory.ranks[0].context_tokens,
        running_requests=flags.whole("max-running-requests", DEFAULT_RUNNING),
        block_tokens=flags.whole("page-size", 1),
    )


def _router(engine: EngineWorkload, memory: Memory) -> RouterPlan:
    lru = sum(tier.pages for tier in memory.tiers) or max(
        1, int(memory.ranks[0].pool_tokens.high) // max(1, engine.block_tokens)
    )
    return RouterPlan(
        flavour="llm-d",
        model=engine.served_name,
        engine="sglang",
        target_ports=(engine.port,),
        match_labels={"llm-serving/engine": engine.role, "role": "leader"},
        block_tokens=engine.block_tokens,
        max_prefix_tokens=engine.context_tokens,
        lru_blocks=lru,
        picker=affinity_picker(
            block_tokens=engine.block_tokens,
            max_prefix_tokens=engine.context_tokens,
            lru_blocks=lru,
            prefill_tokens_per_second=TPU_PREFILL_RATE.value,
        ),
    )
