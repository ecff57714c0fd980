"""The plan of a GKE environment with a4x-maxgpu-4g-metal nodes: vLLM, prefill and decode apart in one NVLink domain."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from catalog import durations
from catalog.hardware import A4X_MAX
from catalog.recipes import (
    DECODE_FRONT_PORT,
    EVENTS_PORT,
    HASH_SEED,
    LOCAL_BUFFER_GIB,
    NIXL_PORT,
    RENDER_PORT,
    VLLM_DECODE,
    VLLM_PREFILL,
    Recipe,
)
from catalog.units import GIB
from planning import gke
from planning.flags import Flags, environment, merge
from planning.memory import HostMemory, Memory, RankMemory
from planning.plan import Plan
from planning.router import ENGINE_LABEL, RouterPlan, disaggregated_picker
from planning.rules import acknowledged, check
from planning.rules.context import Context, EngineView
from planning.settings.base import Engine
from planning.settings.gke import GkeA4xMax, MooncakeTier, Shape
from planning.startup import Startup
from planning.vllm_memory import DEFAULT_SEQUENCES, block_tokens, rank_memory
from planning.weights import checkpoint
from planning.workload import UNIFIED_CHECKS, EngineWorkload, GpuClaim, Group, PoolPlan, Probe, Probes, SmokePlan

SHM_GIB = 64
"""/dev/shm of a prefill/decode engine (AMD-AGI/Infera@5890f7f)."""
DRAIN_SECONDS, SHUTDOWN_SECONDS, SUPERVISOR_SECONDS = 30, 300, 30
RESERVE_CPU_MILLICORES, RESERVE_GIB = 16_000, 64
"""Left for the node's own daemons: asapd-lite with its huge pages, DRA, DRANET, monitoring."""
EPHEMERAL_GIB = 64
RENDER_SERVICE = "prefill-render"
CHECKS = (*UNIFIED_CHECKS, "needles-under-concurrency")
TIERS_IN_INDEX = 2
"""A block may be known on the GPU and in host memory."""


def plan_a4x(settings: GkeA4xMax, *, now: datetime) -> Plan:
    """The plan."""
    shapes = {"prefill": settings.prefill_shape, "decode": settings.decode_shape}
    nodes = sum(shape.replicas * shape.nodes for shape in shapes.values())
    engines = sum(shape.replicas for shape in shapes.values())
    timing = gke.startup_plan(settings, engines=engines, nodes=nodes, compilation=durations.COMPILE_FIRST)
    prefill = _role(settings, "prefill", VLLM_PREFILL, settings.prefill, shapes["prefill"], timing)
    decode = _role(settings, "decode", VLLM_DECODE, settings.decode, shapes["decode"], timing)
    memory = _memory(settings, (prefill, decode))
    router = _router(settings, prefill.workload, decode.workload)
    context = Context(settings=settings, engines=(prefill, decode), router=router, memory=memory)
    return Plan(
        target=settings.target,
        model=settings.model.name,
        made_at=now,
        memory=memory,
        startup=timing,
        cost=gke.cost_plan(
            settings,
            machines=f"{nodes} × {A4X_MAX.name}",
            accelerators=nodes * A4X_MAX.ranks,
            look="gce",
            seconds=timing.accelerated_seconds,
        ),
        engines=(prefill.workload, decode.workload),
        router=router,
        weights=gke.weights_plan(settings, timing),
        pool=PoolPlan(
            machine=A4X_MAX.name,
            nodes=nodes,
            efa_cards=(),
            accelerators_per_node=A4X_MAX.ranks,
            disk_gib=gke.BOOT_DISK_GIB,
        ),
        smoke=SmokePlan(
            model=router.model,
            checks=CHECKS,
            over_long_tokens=prefill.workload.context_tokens + prefill.workload.block_tokens,
            timeout_seconds=gke.SMOKE_SECONDS,
        ),
        block=None,
        schedule=None,
        findings=acknowledged(check(context), settings.acknowledge),
    )


def connectors(settings: GkeA4xMax, role: str) -> dict[str, Any]:
    """`--kv-transfer-config` of a role: NIXL between the roles, and the tier that the cache spills to.

    Decode runs without prefix caching, and there the store refuses everything but a child that only gives capacity.
    """
    prefill = role == "prefill"
    nixl = {"kv_connector": "NixlConnector", "kv_role": "kv_producer" if prefill else "kv_consumer"}
    nixl |= {"kv_buffer_device": "cuda"}
    if isinstance(settings.tier, MooncakeTier):
        extra: dict[str, Any] = {"load_async": True} if prefill else {"enable_lookup": False}
        store = {
            "kv_connector": "MooncakeStoreConnector",
            "kv_role": "kv_both" if prefill else "kv_consumer",
            "kv_connector_extra_config": extra,
        }
        children = [nixl, store]
    else:
        offload = {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {
                "cpu_bytes_to_use": settings.tier.gib_per_rank * GIB,
                "eviction_policy": "lru",
            },
        }
        children = [nixl, offload] if prefill else [nixl]
    return {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both" if prefill else "kv_consumer",
        "kv_load_failure_policy": "fail",
        "kv_connector_extra_config": {"connectors": children},
    }


def events(settings: GkeA4xMax, port: int) -> dict[str, Any]:
    """`--kv-events-config` of prefill: where the router hears which blocks an engine holds."""
    return {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://*:{EVENTS_PORT}",
        "topic": f"kv@$(POD_IP):{port}@{settings.model.name}",
    }


def _role(settings: GkeA4xMax, role: str, recipe: Recipe, changes: Engine, shape: Shape, timing: Startup) -> EngineView:
    model = gke.served_model(settings)
    own: dict[str, Any] = {
        "kv-transfer-config": json.dumps(connectors(settings, role)),
        "shutdown-timeout": SHUTDOWN_SECONDS,
    }
    if role == "prefill":
        own["kv-events-config"] = json.dumps(events(settings, recipe.port))
    flags = merge(recipe, served_name=settings.model.name, changes={**own, **changes.flags})
    workload = _workload(settings, role, recipe, changes, shape, timing, flags, block_tokens(model, flags))
    return EngineView(
        workload=workload,
        flags=flags,
        model=model,
        accelerator=A4X_MAX.accelerator,
        quantised=role == "decode" and settings.quantise_projections,
    )


def _workload(
    settings: GkeA4xMax,
    role: str,
    recipe: Recipe,
    changes: Engine,
    shape: Shape,
    timing: Startup,
    flags: Flags,
    block: int,
) -> EngineWorkload:
    local = flags.whole("data-parallel-size-local", 1)
    port = flags.whole("port", recipe.port)
    limits = timing.limits
    return EngineWorkload(
        role=role,
        engine="vllm",
        image=changes.image or settings.image,
        command=recipe.command,
        arguments=flags.argv(),
        env=environment(
            recipe,
            changes.env,
            HF_HUB_OFFLINE="1",
            TRANSFORMERS_OFFLINE="1",
            VLLM_ENGINE_READY_TIMEOUT_S=str(limits.startup_seconds),
            VLLM_SSM_CONV_STATE_LAYOUT="DS",
            VLLM_NIXL_SIDE_CHANNEL_HOST="$(POD_IP)",
            VLLM_NIXL_SIDE_CHANNEL_PORT=str(NIXL_PORT),
        ),
        port=port,
        ports=tuple(range(port, port + local)) if role == "decode" else (port,),
        group=Group(replicas=shape.replicas, pods=shape.nodes),
        claim=GpuClaim(device_class="nvidia.com/gpu", count=A4X_MAX.ranks, ranks=A4X_MAX.ranks, selector=""),
        probes=_probes(
            flags.whole("data-parallel-supervisor-port", 9256) if role == "decode" else port,
            limits.startup_period_seconds,
            limits.startup_failures,
            role,
        ),
        cpu_millicores=A4X_MAX.vcpus * 1000 - RESERVE_CPU_MILLICORES,
        # The pod has the node to itself: RDMA takes all of a node's interfaces. Nobody publishes what loading takes.
        memory_gib=math.floor(A4X_MAX.usable_bytes / GIB) - RESERVE_GIB,
        shm_gib=SHM_GIB,
        ephemeral_gib=EPHEMERAL_GIB,
        ready_seconds=limits.engine_ready_seconds,
        drain_seconds=DRAIN_SECONDS,
        grace_seconds=DRAIN_SECONDS + SHUTDOWN_SECONDS + SUPERVISOR_SECONDS,
        labels={
            "llm-serving/engine": "vllm",
            "llm-d.ai/role": role,
            "llm-d.ai/inference-serving": "true",
            **dict.fromkeys(ENGINE_LABEL.values(), "vllm"),
        },
        served_name=flags.text("served-model-name", settings.model.name),
        context_tokens=flags.whole("max-model-len", gke.served_model(settings).context_tokens),
        running_requests=flags.whole("max-num-seqs", DEFAULT_SEQUENCES),
        block_tokens=block,
    )


def _probes(port: int, period: int, failures: int, role: str) -> Probes:
    """Decode's supervisor listens only when every rank is well; a prefill engine's leader answers for its group."""
    ready = "/readyz" if role == "decode" else "/v1/models"
    return Probes(
        startup=Probe(path="/health", port=port, period_seconds=period, timeout_seconds=5, failure_threshold=failures),
        liveness=Probe(path="/health", port=port, period_seconds=30, timeout_seconds=5, failure_threshold=3),
        readiness=Probe(path=ready, port=port, period_seconds=10, timeout_seconds=5, failure_threshold=3),
    )


def _shares(settings: GkeA4xMax, role: str) -> Mapping[str, float]:
    ranks, tier = A4X_MAX.ranks, settings.tier
    shares: dict[str, float] = {"/dev/shm": SHM_GIB * GIB}
    if isinstance(tier, MooncakeTier):
        shares[f"Mooncake segments, {ranks} × {tier.segment_gb}"] = ranks * tier.segment_gb * GIB
        shares[f"Mooncake buffers, {ranks} × {LOCAL_BUFFER_GIB}"] = ranks * LOCAL_BUFFER_GIB * GIB
    elif role == "prefill":
        shares[f"offloaded cache, {ranks} × {tier.gib_per_rank}"] = ranks * tier.gib_per_rank * GIB
    return shares


def _memory(settings: GkeA4xMax, views: tuple[EngineView, ...]) -> Memory:
    model = gke.served_model(settings)
    derived = checkpoint(model)
    hosts = []
    for view in views:
        shares = dict(_shares(settings, view.role))
        if isinstance(settings.tier, MooncakeTier) and settings.tier.donors:
            shares["Mooncake donor"] = settings.tier.donor_gb * GIB
        hosts.append(
            HostMemory.of(
                machine=A4X_MAX.name,
                role=view.role,
                shares=shares,
                usable_bytes=A4X_MAX.usable_bytes,
                assumed=A4X_MAX.allocatable_bytes is None,
            )
        )
    return Memory(
        checkpoint_gib=(derived.total - derived.other) / GIB,
        published_gib=model.checkpoint_gib,
        ranks=tuple(_rank(view) for view in views),
        hosts=tuple(hosts),
    )


def _rank(view: EngineView) -> RankMemory:
    return rank_memory(
        view.model,
        view.accelerator,
        view.flags,
        role=view.role,
        context=view.workload.context_tokens,
        speculation=view.json("speculative-config"),
        quantised=view.quantised,
    )


def _router(settings: GkeA4xMax, prefill: EngineWorkload, decode: EngineWorkload) -> RouterPlan:
    local = len(decode.ports)
    endpoints = prefill.group.replicas + decode.pods * local
    return RouterPlan(
        flavour="llm-d",
        model=prefill.served_name,
        engine="vllm",
        target_ports=tuple(range(DECODE_FRONT_PORT, DECODE_FRONT_PORT + local)),
        match_labels={"llm-serving/engine": "vllm", "llm-d.ai/inference-serving": "true"},
        block_tokens=prefill.block_tokens,
        max_prefix_tokens=prefill.context_tokens,
        lru_blocks=0,
        picker=disaggregated_picker(
            model=settings.model.name,
            block_tokens=prefill.block_tokens,
            hash_seed=HASH_SEED,
            events_port=EVENTS_PORT,
            render_url=f"http://{RENDER_SERVICE}:{RENDER_PORT}",
            holders=endpoints * TIERS_IN_INDEX,
        ),
    )
