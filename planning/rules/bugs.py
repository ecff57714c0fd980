"""Bugs that are known in public and not fixed in what is pinned here: avoided where they can be, named where they can't."""

from __future__ import annotations

from collections.abc import Iterator

from planning.findings import Severity
from planning.rules.context import Context, EngineView
from planning.rules.rule import Found, Rules
from planning.rules.sglang import HICACHE

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("engines sheet §9")


@RULES.engine(
    "sglang",
    "hicache-hybrid",
    ERROR,
    why="a prefix restored from host memory gives a fluent answer to another prompt, and nothing reports it",
    remedy="Take enable-hierarchical-cache and the hicache flags away; the recipe does without",
    source="https://github.com/sgl-project/sglang/issues/39830 (open, 2026-09-16), 38031",
)
def _(view: EngineView) -> Iterator[Found]:
    if HICACHE in view.flags and view.accelerator.major:
        yield Found("HiCache on a model with linear attention", HICACHE)


@RULES.engine(
    "sglang",
    "hicache-gate",
    WARNING,
    why="on GPUs the same feature restores wrong states (sgl-project/sglang#39830); for TPU nothing is published either way",
    remedy="Keep the correctness gate of the smoke check: the same prompts cold and from the host tier must agree",
    source="https://github.com/sgl-project/sglang/issues/39830; llm-d guide kimi-k3-1",
)
def _(view: EngineView) -> Iterator[Found]:
    if HICACHE in view.flags and not view.accelerator.major:
        yield Found("HiCache on a model with linear attention, unverified on TPU", HICACHE)


@RULES.engine(
    "sglang",
    "hicache-pipeline",
    ERROR,
    why="the state is read before it is restored",
    remedy="Set pp-size to 1, or take HiCache away",
    source="https://github.com/sgl-project/sglang/issues/38866 (open, 2026-09-10)",
)
def _(view: EngineView) -> Iterator[Found]:
    if HICACHE in view.flags and view.flags.whole("pp-size", 1) > 1:
        yield Found("HiCache with pipeline parallelism", f"pp-size={view.flags.text('pp-size')}")


@RULES.engine(
    "sglang",
    "hicache-misses",
    NOTE,
    why="on models with linear attention host hits may never happen: nodes are pruned, chunk boundaries are not backed up",
    remedy="Watch sglang:hicache_host_used_tokens and load_back_tokens_total; if they stay at zero, HiCache only costs memory",
    source="https://github.com/sgl-project/sglang/issues/33713, pull/30850 (open)",
)
def _(view: EngineView) -> Iterator[Found]:
    if HICACHE in view.flags:
        yield Found("HiCache may never be hit", HICACHE)


@RULES.engine(
    "sglang",
    "speculation-long-context",
    WARNING,
    why="builds before the fix died with Xid 13 at about 188,000 to 219,000 tokens on B300, and took the whole group along",
    remedy="Make sure that the image is younger than the fix, and soak it with long prompts",
    source="https://github.com/sgl-project/sglang/issues/32855 (closed)",
)
def _(view: EngineView) -> Iterator[Found]:
    if "speculative-algorithm" in view.flags and view.workload.context_tokens > 188_000:
        yield Found("speculation with a long context", view.flags.text("speculative-algorithm"))


@RULES.stack(
    "disaggregation-corruption",
    WARNING,
    why="silently corrupted output under load is reported for this model over NIXL; one node with TP8 was stable",
    remedy="Run the concurrency needle test before traffic, and keep an aggregated fallback",
    source="https://github.com/vllm-project/vllm/issues/52627 (open, 2026-08-19)",
)
def _(context: Context) -> Iterator[Found]:
    prefill = context.engine("prefill")
    if prefill and prefill.connector("NixlConnector"):
        yield Found("prefill and decode apart, over NIXL", prefill.model.repo)


@RULES.stack(
    "speculation-one-role",
    ERROR,
    why="NIXL refuses the handshake: number of KV layers must match",
    remedy="Give both roles the same speculative-config, or none",
    source="https://github.com/vllm-project/vllm/issues/48221 (open)",
)
def _(context: Context) -> Iterator[Found]:
    prefill, decode = context.engine("prefill"), context.engine("decode")
    if prefill and decode:
        given = ["speculative-config" in view.flags for view in (prefill, decode)]
        if given[0] != given[1]:
            yield Found("only one role speculates", "prefill" if given[0] else "decode")


@RULES.engine(
    "vllm",
    "decode-prefix-caching",
    ERROR,
    why="a hybrid model that receives its cache over NIXL crashes: SSM can only have one local block",
    remedy="Keep no-enable-prefix-caching on decode",
    source="https://github.com/ai-dynamo/dynamo/issues/12197 (open, 2026-07-27)",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.role == "decode" and view.connector("NixlConnector") and "no-enable-prefix-caching" not in view.flags:
        yield Found("prefix caching on decode")


@RULES.engine(
    "vllm",
    "speculation-with-connector",
    NOTE,
    why="speculation corrupted hybrid models with any KV connector until a fix of 2026-08-24",
    remedy="Make sure that the image is younger",
    source="https://github.com/vllm-project/vllm/issues/53505 (closed)",
)
def _(view: EngineView) -> Iterator[Found]:
    if "speculative-config" in view.flags and view.connectors:
        yield Found("speculation together with a KV connector")


@RULES.engine(
    "vllm",
    "speculation-context-parallel",
    ERROR,
    why="vLLM refused MLA DSpark with decode context parallelism, and nobody reports it lifted",
    remedy="Take decode-context-parallel-size or the speculation away",
    source="https://github.com/SemiAnalysisAI/InferenceX/pull/2914",
)
def _(view: EngineView) -> Iterator[Found]:
    if "speculative-config" in view.flags and view.flags.whole("decode-context-parallel-size", 1) > 1:
        yield Found("DSpark with decode context parallelism", view.flags.text("decode-context-parallel-size"))


@RULES.engine(
    "any",
    "tool-parser",
    NOTE,
    why="the kimi_k3 parsers drop a tool call when the mark that closes thinking is missing",
    remedy="Check tool calls on the client and ask again; the smoke check tries one",
    source="https://github.com/vllm-project/vllm/issues/53246, 54273, 51399 (open)",
)
def _(view: EngineView) -> Iterator[Found]:
    if view.flags.text("tool-call-parser") == "kimi_k3" and view.flags.text("grammar-backend") != "none":
        yield Found("tool calls may get lost", "kimi_k3")


@RULES.engine(
    "any",
    "tool-parser-name",
    ERROR,
    why="without the model's own parsers, thinking and tool calls come back as plain text",
    remedy="Use kimi_k3 for reasoning-parser and tool-call-parser",
)
def _(view: EngineView) -> Iterator[Found]:
    for name in ("reasoning-parser", "tool-call-parser"):
        if view.flags.text(name) != "kimi_k3":
            yield Found(f"{name} is not the model's", view.flags.text(name, "unset"))
