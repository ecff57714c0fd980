"""SGLang: what its argument parser, its start-up checks and the model's shape refuse."""

from __future__ import annotations

from collections.abc import Iterator

from planning.findings import Severity
from planning.rules.context import EngineView
from planning.rules.rule import Found, Rules

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("sglang 0.5.23, python/sglang/srt/arg_groups and server_args.py")

TRACK_INTERVAL = 256
"""Tokens between two states that the radix cache tracks; a page must divide it (default of --mamba-track-interval)."""
HICACHE = "enable-hierarchical-cache"


@RULES.engine(
    "sglang",
    "sglang-dcp-divides-tp",
    ERROR,
    why="context-parallel groups are built inside the tensor-parallel group",
    remedy="Choose dcp-size so that it divides tp-size",
)
def _(view: EngineView) -> Iterator[Found]:
    tp, dcp = view.flags.whole("tp-size", 1), view.flags.whole("dcp-size", 1)
    if dcp > 0 and tp % dcp:
        yield Found("dcp-size does not divide tp-size", f"{dcp}, {tp}")


@RULES.engine(
    "sglang",
    "sglang-ep-divides-tp",
    ERROR,
    why="experts are split over expert-parallel × expert-tensor-parallel = tp ranks",
    remedy="Choose ep-size so that it divides tp-size",
)
def _(view: EngineView) -> Iterator[Found]:
    tp, ep = view.flags.whole("tp-size", 1), view.flags.whole("ep-size", 1)
    if ep > 0 and tp % ep:
        yield Found("ep-size does not divide tp-size", f"{ep}, {tp}")


@RULES.engine(
    "sglang",
    "sglang-heads",
    ERROR,
    why="every rank gets the same number of attention heads",
    remedy="Use 8, 16 or 32",
)
def _(view: EngineView) -> Iterator[Found]:
    tp, attention_dp = view.flags.whole("tp-size", 1), view.flags.whole("attn-dp-size", 1)
    heads = view.model.kda.heads
    width = tp // attention_dp if attention_dp > 0 else 0
    if width < 1 or heads % width:
        yield Found(f"{heads} heads can't be split over the attention ranks", width)


@RULES.engine(
    "sglang",
    "sglang-experts",
    ERROR,
    why="every expert-parallel group gets the same number of experts",
    remedy="Use a power of two up to 128",
)
def _(view: EngineView) -> Iterator[Found]:
    ep, experts = view.flags.whole("ep-size", 1), view.model.moe.experts
    if ep < 1 or experts % ep:
        yield Found(f"{experts} experts can't be split over ep-size", ep)


@RULES.engine(
    "sglang",
    "sglang-dcp-hicache",
    ERROR,
    why="SGLang refuses it for sparse attention: DSA DCP does not support HiSparse or HiCache",
    remedy="Take enable-hierarchical-cache away, or set dcp-size to 1",
    source="sglang 0.5.23 arg_groups/model_overrides/deepseek_v2.py; lifted in open PR sgl-project/sglang#39639",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("dcp-size", 1) > 1 and HICACHE in view.flags:
        yield Found("HiCache together with decode context parallelism", f"dcp-size={view.flags.text('dcp-size')}")


@RULES.engine(
    "sglang",
    "sglang-dcp-backend",
    ERROR,
    why="a2a and fi_a2a exchange between context-parallel ranks",
    remedy="Set dcp-size above 1, or take dcp-comm-backend away",
)
def _(view: EngineView) -> Iterator[Found]:
    backend = view.flags.text("dcp-comm-backend")
    if backend in ("a2a", "fi_a2a") and view.flags.whole("dcp-size", 1) <= 1:
        yield Found("dcp-comm-backend without decode context parallelism", backend)


@RULES.engine(
    "sglang",
    "sglang-states-per-path",
    ERROR,
    why="0 would keep no state, and SGLang refuses it",
    remedy="Use -1 for all, or 1 and more; 4 is what the recipe measured",
)
def _(view: EngineView) -> Iterator[Found]:
    states = view.flags.whole("mamba-max-states-per-path", -1)
    if states != -1 and states < 1:
        yield Found("mamba-max-states-per-path is neither -1 nor 1 and more", states)


@RULES.engine(
    "sglang",
    "sglang-nnodes",
    ERROR,
    why="ranks are spread evenly over the nodes",
    remedy="Choose nnodes so that it divides tp-size × pp-size",
)
def _(view: EngineView) -> Iterator[Found]:
    ranks = view.flags.whole("tp-size", 1) * view.flags.whole("pp-size", 1)
    nodes = view.flags.whole("nnodes", 1)
    if nodes < 1 or ranks % nodes:
        yield Found("nnodes does not divide the ranks", f"{nodes}, {ranks}")


@RULES.engine(
    "sglang",
    "sglang-nodes-of-this-plan",
    ERROR,
    why="the plan makes one pod for each node of an engine, and every rank needs its own accelerator",
    remedy="Change the number of replicas instead; another shape of engine is another environment",
)
def _(view: EngineView) -> Iterator[Found]:
    nodes, pods = view.flags.whole("nnodes", 1), view.workload.group.pods
    ranks = view.flags.whole("tp-size", 1) * view.flags.whole("pp-size", 1)
    if nodes != pods:
        yield Found(f"nnodes is not the {pods} pods of a replica", nodes)
    elif ranks != view.workload.claim.ranks * pods:
        yield Found(
            f"{ranks} ranks on {view.workload.claim.ranks * pods} accelerators", f"tp-size={view.flags.text('tp-size')}"
        )


@RULES.engine(
    "sglang",
    "sglang-page-size",
    ERROR,
    why=f"a kept state lies every {TRACK_INTERVAL} tokens and must lie on a page boundary",
    remedy="Use 32, 64, 128 or 256",
)
def _(view: EngineView) -> Iterator[Found]:
    page = view.flags.whole("page-size", 1)
    if page < 1 or TRACK_INTERVAL % page:
        yield Found(f"page-size does not divide {TRACK_INTERVAL}", view.flags.text("page-size"))


@RULES.engine(
    "sglang",
    "sglang-hicache-flags",
    WARNING,
    why="they do nothing without enable-hierarchical-cache",
    remedy="Take them away, or add enable-hierarchical-cache where it is allowed",
)
def _(view: EngineView) -> Iterator[Found]:
    idle = [name for name in view.flags.values if name.startswith("hicache-")]
    if idle and HICACHE not in view.flags:
        yield Found("HiCache flags without HiCache", ", ".join(idle))


@RULES.engine(
    "sglang",
    "sglang-served-name",
    ERROR,
    why="the colon is reserved for LoRA adapters (model:adapter), and SGLang stops at start",
    remedy="Set model.served_name to a name without a colon",
)
def _(view: EngineView) -> Iterator[Found]:
    if ":" in view.workload.served_name:
        yield Found("the served name has a colon", view.workload.served_name)


@RULES.engine(
    "sglang",
    "sglang-memory-fraction",
    ERROR,
    why="it is the share of the accelerator's memory for weights and pools; graphs and workspaces need the rest",
    remedy="Use 0.80 to 0.92; the recipe has 0.88",
)
def _(view: EngineView) -> Iterator[Found]:
    fraction = view.flags.number("mem-fraction-static", 0.88)
    if not 0 < fraction <= 0.97:
        yield Found("mem-fraction-static is not between 0 and 0.97", fraction)


@RULES.engine(
    "sglang",
    "sglang-metrics",
    WARNING,
    why="without it there is no /metrics: the router sees no load, and no alert fires",
    remedy="Leave enable-metrics in",
)
def _(view: EngineView) -> Iterator[Found]:
    if "enable-metrics" not in view.flags:
        yield Found("the engine serves no metrics")


@RULES.engine(
    "sglang",
    "sglang-data-parallel-nodes",
    ERROR,
    why="SGLang refuses data-parallel replicas over several nodes",
    remedy="Use attn-dp-size, or more replicas behind the router",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("dp-size", 1) > 1 and view.flags.whole("nnodes", 1) > 1:
        yield Found("dp-size with more than one node", view.flags.text("dp-size"))


@RULES.engine(
    "sglang",
    "sglang-attention-dp",
    WARNING,
    why="CVE-2026-93034 (0.5.20 and older): with attention data parallelism whoever reaches the init port runs code",
    remedy="Keep the default-deny network policies, and check the engine's version inside the pinned image",
    source="CVEProject cvelistV5",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("attn-dp-size", 1) > 1:
        yield Found("attention data parallelism", view.flags.text("attn-dp-size"))


@RULES.engine(
    "sglang",
    "sglang-speculation-pipeline",
    ERROR,
    why="DSPARK needs pp-size 1",
    remedy="Set pp-size to 1, or take the speculative flags away",
    source="SGLang cookbook, Kimi-K3",
)
def _(view: EngineView) -> Iterator[Found]:
    if "speculative-algorithm" in view.flags and view.flags.whole("pp-size", 1) > 1:
        yield Found("speculation with pipeline parallelism", f"pp-size={view.flags.text('pp-size')}")


@RULES.engine(
    "sglang",
    "sglang-speculation-dcp",
    ERROR,
    why="DSPARK under decode context parallelism needs SGLANG_RAGGED_VERIFY_MODE=static",
    remedy="Set engine.env SGLANG_RAGGED_VERIFY_MODE to static",
    source="SGLang cookbook, Kimi-K3",
)
def _(view: EngineView) -> Iterator[Found]:
    speculation = view.flags.text("speculative-algorithm")
    static = view.env.get("SGLANG_RAGGED_VERIFY_MODE") == "static"
    if speculation.upper() == "DSPARK" and view.flags.whole("dcp-size", 1) > 1 and not static:
        yield Found("DSPARK with decode context parallelism", speculation)


@RULES.engine(
    "sglang",
    "sglang-dcp-prefill-cp",
    ERROR,
    why="SGLang refuses the two together",
    remedy="Take one of them away",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("dcp-size", 1) > 1 and "enable-prefill-cp" in view.flags:
        yield Found("prefill context parallelism together with decode context parallelism", "enable-prefill-cp")


@RULES.engine(
    "sglang",
    "sglang-lmcache-dcp",
    ERROR,
    why="LMCache refuses decode context parallelism",
    remedy="Take enable-lmcache away",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("dcp-size", 1) > 1 and "enable-lmcache" in view.flags:
        yield Found("LMCache with decode context parallelism", "enable-lmcache")


@RULES.engine(
    "sglang",
    "sglang-dcp-backend-fabric",
    NOTE,
    why="SGLang's K3 page advises a2a on B200 and B300 (fi_a2a is for one MNNVL domain); the K3.1 recipe ran with fi_a2a",
    remedy="Nothing to do; if the engine hangs at its first exchange, set engine.flags dcp-comm-backend to a2a",
    source="SGLang cookbook, Kimi-K3 and K3.1-Pro",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.text("dcp-comm-backend") == "fi_a2a" and "GB300" not in view.accelerator.name:
        yield Found("dcp-comm-backend=fi_a2a outside an NVL72 domain", view.accelerator.name)


@RULES.engine(
    "sglang",
    "sglang-ep-under-dcp",
    WARNING,
    why="the exchange buffers of expert parallelism eat the memory that context parallelism frees",
    remedy="Keep the recipe's ep-size 2",
    source="SGLang cookbook, Kimi-K3",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.whole("dcp-size", 1) > 1 and view.flags.whole("ep-size", 1) > 2:
        yield Found("a larger ep-size under decode context parallelism", view.flags.text("ep-size"))


@RULES.engine(
    "sglang",
    "sglang-hicache-guard",
    WARNING,
    why="an explicit hicache-ratio or hicache-size switches SGLang's own memory guard off; too much kills the pod",
    remedy="Check the host's sum in this plan; it is what replaces the guard",
    source="sglang 0.5.23, --hicache-host-memory-fraction",
)
def _(view: EngineView) -> Iterator[Found]:
    given = [name for name in ("hicache-ratio", "hicache-size") if name in view.flags]
    if given and HICACHE in view.flags:
        yield Found("HiCache with an explicit size", ", ".join(f"{n}={view.flags.text(n)}" for n in given))


@RULES.engine(
    "sglang",
    "sglang-forced-by-build",
    WARNING,
    why="the K3.1 build forces its own KV dtype (fp8_e4m3), page size (64) and attention backend on CUDA",
    remedy="Leave them out, so that the plan and the engine agree",
    source="Modelplane recipe, model-deployment.yaml",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.accelerator.major:
        given = [name for name in ("kv-cache-dtype", "page-size", "attention-backend") if name in view.flags]
        if given:
            yield Found("flags that the build overrides", ", ".join(given))


@RULES.engine(
    "sglang",
    "sglang-tools-without-grammar",
    NOTE,
    why="with grammar-backend none, requests that carry `tools` are answered with 400",
    remedy="Tell the users; the parser flags stay for the day it works",
    source="llm-d guide kimi-k3-1",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.text("grammar-backend") == "none":
        yield Found("tool calls don't work in this configuration", "grammar-backend=none")


@RULES.engine(
    "sglang",
    "sglang-watchdog",
    NOTE,
    why="a batch that runs longer than watchdog-timeout (300 s) ends the server, and the first batch may compile kernels",
    remedy="Nothing to do unless the first start dies after five minutes; then set engine.flags watchdog-timeout to 3600",
    source="sglang 0.5.23; 3600 is what llm-d's kimi-k3 manifest sets",
)
def _(view: EngineView) -> Iterator[Found]:
    timeout = view.flags.whole("watchdog-timeout", 300)
    if timeout < 600:
        yield Found("the watchdog may end an engine that is still compiling", f"{timeout} s")
