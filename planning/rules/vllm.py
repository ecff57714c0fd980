"""vLLM: what its argument parser, its start-up checks and the model's shape refuse."""

from __future__ import annotations

from collections.abc import Iterator

from planning.findings import Severity
from planning.rules.context import EngineView
from planning.rules.rule import Found, Rules

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("vllm 0.33.0, vllm/engine/arg_utils.py and entrypoints")

MULTI_PORT = "data-parallel-multi-port-external-lb"


def _ranks(view: EngineView) -> int:
    flags = view.flags
    return (
        flags.whole("data-parallel-size", 1)
        * flags.whole("tensor-parallel-size", 1)
        * flags.whole("pipeline-parallel-size", 1)
    )


@RULES.engine(
    "vllm",
    "vllm-nnodes",
    ERROR,
    why="ranks are spread evenly over the nodes",
    remedy="Choose nnodes so that it divides data × tensor × pipeline parallelism",
)
def _(view: EngineView) -> Iterator[Found]:
    nodes = view.flags.whole("nnodes", 1)
    if nodes < 1 or _ranks(view) % nodes:
        yield Found("nnodes does not divide the ranks", f"{nodes}, {_ranks(view)}")


@RULES.engine(
    "vllm",
    "vllm-ranks-of-this-plan",
    ERROR,
    why="every rank needs its own GPU, and a GPU without a rank is paid for all the same",
    remedy="Change the shape of the role (prefill_shape, decode_shape) along with the flags",
)
def _(view: EngineView) -> Iterator[Found]:
    have = view.workload.group.pods * view.workload.claim.ranks
    if _ranks(view) != have:
        yield Found(
            f"{_ranks(view)} ranks on {have} GPUs", f"{view.workload.group.pods} nodes of {view.workload.claim.ranks}"
        )


@RULES.engine(
    "vllm",
    "vllm-local-divides",
    ERROR,
    why="every pod runs the same number of data-parallel ranks",
    remedy="Use 4, the GPUs of a node",
)
def _(view: EngineView) -> Iterator[Found]:
    size, local = view.flags.whole("data-parallel-size", 1), view.flags.whole("data-parallel-size-local", 1)
    if local < 1 or size % local:
        yield Found("data-parallel-size-local does not divide data-parallel-size", f"{local}, {size}")


@RULES.engine(
    "vllm",
    "vllm-multi-port",
    ERROR,
    why="vLLM refuses the combination at start",
    remedy="Multi-port needs data-parallel-size above 1, two or more local ranks, and no other way of balancing",
)
def _(view: EngineView) -> Iterator[Found]:
    flags = view.flags
    if MULTI_PORT not in flags:
        return
    if flags.whole("data-parallel-size", 1) <= 1:
        yield Found("multi-port balancing without data parallelism", flags.text("data-parallel-size", "1"))
    if flags.whole("data-parallel-size-local", 1) < 2:
        yield Found("multi-port balancing needs two local ranks", flags.text("data-parallel-size-local", "1"))
    if flags.whole("api-server-count", 1) != 1:
        yield Found("multi-port balancing with more API servers", flags.text("api-server-count"))
    for name in (
        "data-parallel-rank",
        "data-parallel-external-lb",
        "data-parallel-hybrid-lb",
        "grpc",
        "uds",
        "headless",
    ):
        if name in flags:
            yield Found(f"multi-port balancing together with {name}")


@RULES.engine(
    "vllm",
    "vllm-supervisor-port",
    ERROR,
    why="the supervisor would listen where one of its children does",
    remedy="Use 8208",
)
def _(view: EngineView) -> Iterator[Found]:
    if MULTI_PORT in view.flags:
        port, first = view.flags.whole("data-parallel-supervisor-port", 9256), view.workload.port
        if first <= port < first + view.flags.whole("data-parallel-size-local", 1):
            yield Found("the supervisor's port is one of its children's", port)


@RULES.engine(
    "vllm",
    "vllm-replayssm",
    ERROR,
    why="Kimi-K3 supports --use-replayssm only with speculative decoding and without pipeline parallelism",
    remedy="Keep speculative-config, or take use-replayssm away",
)
def _(view: EngineView) -> Iterator[Found]:
    if "use-replayssm" in view.flags:
        if "speculative-config" not in view.flags:
            yield Found("use-replayssm without speculation")
        if view.flags.whole("pipeline-parallel-size", 1) > 1:
            yield Found("use-replayssm with pipeline parallelism", view.flags.text("pipeline-parallel-size"))


@RULES.engine(
    "vllm",
    "vllm-cache-format",
    ERROR,
    why="packed FP4 records need a Blackwell GPU and a sparse MLA backend; plain nvfp4 is refused for MLA",
    remedy="Use nvfp4_ds_mla on Blackwell, fp8_ds_mla elsewhere",
)
def _(view: EngineView) -> Iterator[Found]:
    kind = view.flags.text("kv-cache-dtype")
    if kind == "nvfp4" or (kind == "nvfp4_ds_mla" and view.accelerator.major != 10):
        yield Found("kv-cache-dtype does not work here", kind)


@RULES.engine(
    "vllm",
    "vllm-dspark",
    ERROR,
    why="DSpark is implemented by model runner V2 only, without pipeline parallelism",
    remedy="Take VLLM_USE_V2_MODEL_RUNNER=0 or pipeline parallelism away",
)
def _(view: EngineView) -> Iterator[Found]:
    speculation = view.json("speculative-config")
    if isinstance(speculation, dict) and speculation.get("method") == "dspark":
        if view.flags.whole("pipeline-parallel-size", 1) > 1:
            yield Found("DSpark with pipeline parallelism", view.flags.text("pipeline-parallel-size"))
        if view.env.get("VLLM_USE_V2_MODEL_RUNNER") == "0":
            yield Found("DSpark without model runner V2", "VLLM_USE_V2_MODEL_RUNNER=0")


@RULES.engine(
    "vllm",
    "vllm-synthetic-acceptance",
    ERROR,
    why="it accepts tokens by schedule, whatever they are: for benchmarks only",
    remedy="Use standard, or leave rejection_sample_method out",
)
def _(view: EngineView) -> Iterator[Found]:
    speculation = view.json("speculative-config")
    if isinstance(speculation, dict) and speculation.get("rejection_sample_method") == "synthetic":
        yield Found("speculation accepts tokens that nobody checked", "synthetic")


@RULES.engine(
    "vllm",
    "vllm-store-prefix-caching",
    ERROR,
    why="MooncakeStoreConnector does not support mamba_cache_mode none, which is what prefix caching off means; "
    "only a capacity-only child may do without",
    remedy='Turn prefix caching on, or make the store\'s child kv_consumer with "enable_lookup": false',
)
def _(view: EngineView) -> Iterator[Found]:
    store = view.connector("MooncakeStoreConnector")
    if store is None or "no-enable-prefix-caching" not in view.flags:
        return
    extra = store.get("kv_connector_extra_config")
    lookup = extra.get("enable_lookup", True) if isinstance(extra, dict) else True
    saves = extra.get("save_decode_cache", False) if isinstance(extra, dict) else False
    if store.get("kv_role") != "kv_consumer" or lookup or saves:
        yield Found("a KV store without prefix caching", str(store.get("kv_role", "")))


@RULES.engine(
    "vllm",
    "vllm-conv-state-layout",
    ERROR,
    why="3-read Mamba conv transfer requires DS conv state layout: the worker's start-up check fails",
    remedy="Set VLLM_SSM_CONV_STATE_LAYOUT to DS on every role",
    source="vllm 0.33.0, nixl/base_worker.py",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.connector("NixlConnector") and view.env.get("VLLM_SSM_CONV_STATE_LAYOUT") != "DS":
        yield Found("NIXL without the DS layout", view.env.get("VLLM_SSM_CONV_STATE_LAYOUT", "unset"))


@RULES.engine(
    "vllm",
    "vllm-kv-role",
    ERROR,
    why="a connector needs kv_producer, kv_consumer or kv_both",
    remedy="Set kv_role",
)
def _(view: EngineView) -> Iterator[Found]:
    for child in view.connectors:
        if child.get("kv_role") not in ("kv_producer", "kv_consumer", "kv_both"):
            yield Found("a KV connector without a role", f"{child.get('kv_connector')}: {child.get('kv_role')}")


@RULES.engine(
    "vllm",
    "vllm-side-channel",
    ERROR,
    why="other pods must reach the side channel; the default is localhost",
    remedy="Leave VLLM_NIXL_SIDE_CHANNEL_HOST at the pod's address",
)
def _(view: EngineView) -> Iterator[Found]:
    host = view.env.get("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost")
    if view.connector("NixlConnector") and host in ("localhost", "127.0.0.1", "0.0.0.0"):
        yield Found("NIXL's side channel is on the loopback", host)


@RULES.engine(
    "vllm",
    "vllm-expandable-segments",
    ERROR,
    why="with a KV connector, expandable segments are refused unless the cumem allocator is on",
    remedy="Keep enable-cumem-allocator, or take expandable_segments out of PYTORCH_CUDA_ALLOC_CONF",
)
def _(view: EngineView) -> Iterator[Found]:
    allocator = view.env.get("PYTORCH_CUDA_ALLOC_CONF", "") + view.env.get("PYTORCH_ALLOC_CONF", "")
    if "expandable_segments:True" in allocator and view.connectors and "enable-cumem-allocator" not in view.flags:
        yield Found("expandable segments with a KV connector", allocator)


@RULES.engine(
    "vllm",
    "vllm-custom-mem-pool",
    ERROR,
    why="Mooncake's own memory pool and the cumem allocator exclude each other",
    remedy="Take custom_mem_pool or enable-cumem-allocator away",
)
def _(view: EngineView) -> Iterator[Found]:
    store = view.connector("MooncakeStoreConnector")
    extra = store.get("kv_connector_extra_config") if store else None
    if isinstance(extra, dict) and extra.get("custom_mem_pool") and "enable-cumem-allocator" in view.flags:
        yield Found("Mooncake's memory pool with the cumem allocator", str(extra["custom_mem_pool"]))


@RULES.engine(
    "vllm",
    "vllm-heads",
    ERROR,
    why="every rank gets the same number of attention heads",
    remedy="Use 1, 2, 4, 8, 16 or 32",
)
def _(view: EngineView) -> Iterator[Found]:
    tp, heads = view.flags.whole("tensor-parallel-size", 1), view.model.kda.heads
    if tp < 1 or heads % tp:
        yield Found(f"{heads} heads can't be split over tensor-parallel-size", tp)


@RULES.engine(
    "vllm",
    "vllm-experts",
    ERROR,
    why="every expert-parallel rank gets the same number of experts",
    remedy="Use 8 or 16 ranks",
)
def _(view: EngineView) -> Iterator[Found]:
    ranks = view.flags.whole("tensor-parallel-size", 1) * view.flags.whole("data-parallel-size", 1)
    experts = view.model.moe.experts
    if "enable-expert-parallel" in view.flags and (ranks < 1 or experts % ranks):
        yield Found(f"{experts} experts can't be split over the ranks", ranks)


@RULES.engine(
    "vllm",
    "vllm-ep-size",
    ERROR,
    why="vLLM has no such flag: expert parallelism is tensor × data parallelism once enable-expert-parallel is on",
    remedy="Use enable-expert-parallel",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in ("ep-size", "expert-parallel-size"):
        if name in view.flags:
            yield Found("vLLM has no expert-parallel size", f"{name}={view.flags.text(name)}")


@RULES.engine(
    "vllm",
    "vllm-weight-filter",
    NOTE,
    why="fastsafetensors does not use the list of local experts: every rank reads everything",
    remedy="Nothing to do; the start-up budget counts on it",
    source="vllm 0.33.0, model_executor/model_loader/default_loader.py",
)
def _(view: EngineView) -> Iterator[Found]:
    if "enable-ep-weight-filter" in view.flags and view.flags.text("load-format") == "fastsafetensors":
        yield Found("enable-ep-weight-filter has no effect here", "load-format=fastsafetensors")


@RULES.engine(
    "vllm",
    "vllm-shutdown-timeout",
    WARNING,
    why="on SIGTERM vLLM drops the requests that run; the default is 0 seconds",
    remedy="Set engine.flags shutdown-timeout to 300 or more, below the pod's grace period",
)
def _(view: EngineView) -> Iterator[Found]:
    timeout = view.flags.whole("shutdown-timeout", 0)
    if timeout <= 0:
        yield Found("running requests are dropped when a pod ends", f"shutdown-timeout={timeout}")


@RULES.engine(
    "vllm",
    "vllm-grace",
    ERROR,
    why="the kubelet kills what vLLM still waits for; thirty seconds are its own",
    remedy="Lower shutdown-timeout",
)
def _(view: EngineView) -> Iterator[Found]:
    timeout, grace = view.flags.whole("shutdown-timeout", 0), view.workload.grace_seconds
    if timeout + 30 > grace:
        yield Found("shutdown-timeout is longer than the pod's grace period", f"{timeout} s, {grace} s")


@RULES.engine(
    "vllm",
    "vllm-ready-timeout",
    ERROR,
    why="vLLM gives up on its own ranks after VLLM_ENGINE_READY_TIMEOUT_S; 600 is the default and too short for 1.5 TB",
    remedy="Leave it to the plan",
)
def _(view: EngineView) -> Iterator[Found]:
    given = view.env.get("VLLM_ENGINE_READY_TIMEOUT_S", "600")
    probe = view.workload.probes.startup
    needed = probe.period_seconds * probe.failure_threshold if probe else 0
    if not given.isdigit() or int(given) < needed:
        yield Found("the engine's own start-up limit is shorter than the probe's", f"{given} s, {needed} s")


@RULES.engine(
    "vllm",
    "vllm-memory-utilisation",
    ERROR,
    why="it is the share of the GPU's memory that vLLM may use",
    remedy="Use 0.90 to 0.95",
)
def _(view: EngineView) -> Iterator[Found]:
    share = view.flags.number("gpu-memory-utilization", 0.92)
    if not 0 < share <= 1:
        yield Found("gpu-memory-utilization is not between 0 and 1", share)


@RULES.engine(
    "vllm",
    "vllm-context-parallel",
    ERROR,
    why="context-parallel groups are built inside the tensor-parallel group",
    remedy="Choose a divisor of tensor-parallel-size",
)
def _(view: EngineView) -> Iterator[Found]:
    tp, dcp = view.flags.whole("tensor-parallel-size", 1), view.flags.whole("decode-context-parallel-size", 1)
    if dcp < 1 or tp % dcp:
        yield Found("decode-context-parallel-size does not divide tensor-parallel-size", f"{dcp}, {tp}")


@RULES.engine(
    "vllm",
    "vllm-symmetric-memory",
    ERROR,
    why="it dies with 'TeamManager on multiple devices' when tensor parallelism meets MegaMoE",
    remedy="Take TORCH_SYMMMEM=NVSHMEM away",
    source="SemiAnalysisAI/InferenceX@843c625",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.env.get("TORCH_SYMMMEM") == "NVSHMEM" and view.flags.whole("tensor-parallel-size", 1) > 1:
        yield Found("NVSHMEM symmetric memory with tensor parallelism", "TORCH_SYMMMEM=NVSHMEM")


@RULES.engine(
    "vllm",
    "vllm-mooncake-rpc",
    ERROR,
    why="the master's RPC is not RDMA, and clients can't reach it",
    remedy="Take MC_RPC_PROTOCOL away; protocol rdma belongs into the store's configuration",
    source="kvcache-ai/Mooncake#1048",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.env.get("MC_RPC_PROTOCOL", "").lower() == "rdma":
        yield Found("MC_RPC_PROTOCOL=rdma breaks the master's RPC")


@RULES.engine(
    "vllm",
    "vllm-hybrid-manager",
    ERROR,
    why="without it a hybrid model's state is not moved between prefill and decode",
    remedy="Take disable-hybrid-kv-cache-manager away",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.connectors and "disable-hybrid-kv-cache-manager" in view.flags:
        yield Found("a KV connector without the hybrid cache manager")
