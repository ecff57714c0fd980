"""What must agree between roles, and between engines and router."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.recipes import EVENTS_PORT, HASH_SEED
from planning.findings import Severity
from planning.router_check import problems
from planning.rules.context import Context, EngineView
from planning.rules.rule import Found, Rules

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("engines sheet §0.5, §13.3; llm-d sheet §e")


def _pair(context: Context) -> Iterator[tuple[EngineView, EngineView]]:
    prefill, decode = context.engine("prefill"), context.engine("decode")
    if prefill and decode:
        yield prefill, decode


@RULES.stack(
    "roles-image",
    ERROR,
    why="the NIXL handshake compares engine and connector versions and refuses",
    remedy="Give both roles the same image and digest",
)
def _(context: Context) -> Iterator[Found]:
    for prefill, decode in _pair(context):
        if prefill.workload.image != decode.workload.image:
            yield Found("prefill and decode run different images", decode.workload.image)


@RULES.stack(
    "roles-model",
    ERROR,
    why="the NIXL handshake compares the model's name as it was given, and refuses",
    remedy="Give both roles the same path",
)
def _(context: Context) -> Iterator[Found]:
    for prefill, decode in _pair(context):
        if prefill.workload.command != decode.workload.command:
            yield Found("prefill and decode name the model differently", " ".join(decode.workload.command))


@RULES.stack(
    "roles-handshake",
    ERROR,
    why="the NIXL handshake compares it and refuses, or the bytes that arrive mean something else",
    remedy="Give both roles the same value",
)
def _(context: Context) -> Iterator[Found]:
    for prefill, decode in _pair(context):
        for name in ("kv-cache-dtype", "attention-backend", "speculative-config", "dtype", "block-size"):
            mine, other = prefill.flags.values.get(name), decode.flags.values.get(name)
            if mine != other and (name in prefill.flags) == (name in decode.flags):
                yield Found(f"{name} differs between prefill and decode", f"{mine}, {other}")
        if ("kv-cache-dtype" in prefill.flags) != ("kv-cache-dtype" in decode.flags):
            yield Found("kv-cache-dtype is set on one role only")


@RULES.stack(
    "hash-seed",
    ERROR,
    why="instances that share a store or feed the router's index must hash prefixes alike",
    remedy=f'Set PYTHONHASHSEED to "{HASH_SEED}" on every role, or leave it to the recipe',
)
def _(context: Context) -> Iterator[Found]:
    for view in context.engines:
        if view.workload.engine == "vllm" and view.env.get("PYTHONHASHSEED") != HASH_SEED:
            yield Found(f"{view.role}: PYTHONHASHSEED is not the router's", view.env.get("PYTHONHASHSEED", "unset"))


@RULES.stack(
    "kv-events",
    ERROR,
    why="the router's index of prefixes lives on these events; without them every prompt is computed anew",
    remedy="Leave kv-events-config to the plan",
)
def _(context: Context) -> Iterator[Found]:
    prefill = context.engine("prefill")
    config = prefill.json("kv-events-config") if prefill else {}
    if prefill is None or not isinstance(config, dict):
        if prefill:
            yield Found("prefill publishes no cache events", "kv-events-config")
        return
    if config.get("enable_kv_cache_events") is not True:
        yield Found("prefill's cache events are off", "enable_kv_cache_events")
    port = str(config.get("endpoint", "")).rpartition(":")[2]
    if port != str(EVENTS_PORT):
        yield Found("prefill publishes its events where the router does not listen", str(config.get("endpoint", "")))


@RULES.stack(
    "router-block",
    ERROR,
    why="the router would hash other pieces of the prompt than the engine caches, and never see a hit",
    remedy="Leave block sizes to the plan; the router's is derived from the engine's",
)
def _(context: Context) -> Iterator[Found]:
    view = context.engine("prefill") or context.engine("unified")
    if view and view.workload.block_tokens != context.router.block_tokens:
        yield Found(
            "the router's block is not the engine's", f"{context.router.block_tokens}, {view.workload.block_tokens}"
        )


@RULES.stack(
    "router-block-minimum",
    WARNING,
    why="the router raises blocks below 64 tokens to 64",
    remedy="Use a page-size of 64 or more",
    source="llm-d router, approx-prefix-cache-producer",
)
def _(context: Context) -> Iterator[Found]:
    if context.router.block_tokens < 64:
        yield Found("the engine's block is smaller than the router can follow", context.router.block_tokens)


@RULES.stack(
    "router-served-name",
    ERROR,
    why="the name is part of the topic of cache events, and an @ splits it",
    remedy="Set model.served_name to a name without @",
    source="llm-d router, kvevents topic kv@POD@MODEL",
)
def _(context: Context) -> Iterator[Found]:
    if "@" in context.router.model:
        yield Found("the served name has an @", context.router.model)


@RULES.stack(
    "router-ports",
    ERROR,
    why="an InferencePool takes 1 to 8 target ports",
    remedy="Use at most 8 data-parallel ranks a pod",
    source="gateway-api-inference-extension, InferencePool v1",
)
def _(context: Context) -> Iterator[Found]:
    if not 1 <= len(context.router.target_ports) <= 8:
        yield Found("the router has too many target ports", len(context.router.target_ports))


@RULES.stack(
    "router-config",
    ERROR,
    why="the router stops at start on what it does not know, or takes it and does nothing with it",
    remedy="Leave the router's configuration to the plan",
    source="catalog/router_plugins.py",
)
def _(context: Context) -> Iterator[Found]:
    for problem in problems(context.router.picker, context.router.flavour):
        yield Found("the router's configuration is wrong", problem)
