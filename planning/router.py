"""The router's configuration, derived from what the engines are, so that the two can't disagree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from planning.parts import Part

Flavour = Literal["llm-d", "inference-extension"]

API_VERSION: dict[str, str] = {
    "llm-d": "llm-d.ai/v1alpha1",
    "inference-extension": "inference.networking.x-k8s.io/v1alpha1",
}
"""Header of the configuration that each router's pinned release accepts: llm-d 0.10.0 refuses llm-d.ai/v1, the inference
extension 1.5.0 knows only its own group (llm-d sheet §0)."""

ENGINE_LABEL = {"llm-d": "llm-d.ai/engine-type", "inference-extension": "inference.networking.k8s.io/engine-type"}
"""Pod label by which each router picks the engine's metric names. A custom configuration ignores the chart's setting."""

OBJECTIVE_GROUPS: dict[str, tuple[str, ...]] = {
    "llm-d": ("inference.networking.x-k8s.io", "llm-d.ai"),
    "inference-extension": ("inference.networking.x-k8s.io",),
}
"""API groups in which each router watches InferenceObjectives and InferenceModelRewrites where the cluster has them
(llm-d-router, config/charts/llm-d-router-standalone/templates/rbac.yaml; the inference extension's: config/charts/standalone/templates/rbac.yaml)."""

PREFIX_WEIGHT, QUEUE_WEIGHT, KV_WEIGHT = 3.0, 2.0, 2.0
"""A warm prefix is worth more than an idle queue, but not more than queue and memory together."""


class Plugin(Part):
    """One plugin. parameters: as the plugin's own schema has them."""

    type: str
    name: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class ProfilePlugin(Part):
    """A plugin of a scheduling profile; weight of a scorer."""

    ref: str
    weight: float | None = None


class Profile(Part):
    """A scheduling profile: filters, scorers and a picker, in order."""

    name: str
    plugins: tuple[ProfilePlugin, ...]


class PickerConfig(Part):
    """An EndpointPickerConfig."""

    api_version: str
    plugins: tuple[Plugin, ...]
    profiles: tuple[Profile, ...]
    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def document(self) -> dict[str, JsonValue]:
        """The file's content."""
        config: dict[str, JsonValue] = {
            "apiVersion": self.api_version,
            "kind": "EndpointPickerConfig",
            "plugins": [_plugin(plugin) for plugin in self.plugins],
            "schedulingProfiles": [
                {"name": profile.name, "plugins": [_reference(plugin) for plugin in profile.plugins]}
                for profile in self.profiles
            ],
        }
        if self.sources:
            config["dataLayer"] = {
                "sources": [
                    {"pluginRef": source, "extractors": [{"pluginRef": name} for name in extractors]}
                    for source, extractors in self.sources
                ]
            }
        return config


def _plugin(plugin: Plugin) -> JsonValue:
    found: dict[str, JsonValue] = {"type": plugin.type}
    if plugin.name:
        found["name"] = plugin.name
    if plugin.parameters:
        found["parameters"] = dict(plugin.parameters)
    return found


def _reference(plugin: ProfilePlugin) -> JsonValue:
    found: dict[str, JsonValue] = {"pluginRef": plugin.ref}
    if plugin.weight is not None:
        found["weight"] = plugin.weight
    return found


class RouterPlan(Part):
    """What the router's component needs.

    target_ports: of an endpoint, in rank order. match_labels: pods that are endpoints. block_tokens, max_prefix_tokens and
    lru_blocks: the engine's block, its context, and what one server's cache can hold, in blocks.
    """

    flavour: Flavour
    model: str
    engine: str
    target_ports: tuple[int, ...]
    match_labels: dict[str, str]
    block_tokens: int
    max_prefix_tokens: int
    lru_blocks: int
    picker: PickerConfig
    replicas: int = 1


class SplitRouterPlan(Part):
    """A router that sends each prompt to a prefill engine and its answer to a decode engine. Addresses: of engines, as URLs."""

    prefill: tuple[str, ...]
    decode: tuple[str, ...]


def unified_picker(*, flavour: Flavour, block_tokens: int, max_prefix_tokens: int, lru_blocks: int) -> PickerConfig:
    """One pool of equal engines: prefer a warm prefix, then a short queue and free memory."""
    prefix: dict[str, JsonValue] = {
        "autoTune": False,
        "blockSizeTokens": block_tokens,
        "maxPrefixTokensToMatch": max_prefix_tokens,
        "lruCapacityPerServer": lru_blocks,
    }
    return PickerConfig(
        api_version=API_VERSION[flavour],
        plugins=(
            Plugin(type="approx-prefix-cache-producer", parameters=prefix),
            Plugin(type="prefix-cache-scorer"),
            Plugin(type="queue-scorer"),
            Plugin(type="kv-cache-utilization-scorer"),
            Plugin(type="max-score-picker"),
        ),
        profiles=(
            Profile(
                name="default",
                plugins=(
                    ProfilePlugin(ref="prefix-cache-scorer", weight=PREFIX_WEIGHT),
                    ProfilePlugin(ref="queue-scorer", weight=QUEUE_WEIGHT),
                    ProfilePlugin(ref="kv-cache-utilization-scorer", weight=KV_WEIGHT),
                    ProfilePlugin(ref="max-score-picker"),
                ),
            ),
        ),
    )


def affinity_picker(
    *, block_tokens: int, max_prefix_tokens: int, lru_blocks: int, prefill_tokens_per_second: int
) -> PickerConfig:
    """Equal engines with long sessions: stay where the prefix is warm until that engine is saturated (llm-d only)."""
    prefix: dict[str, JsonValue] = {
        "autoTune": False,
        "blockSizeTokens": block_tokens,
        "maxPrefixTokensToMatch": max_prefix_tokens,
        "lruCapacityPerServer": lru_blocks,
    }
    return PickerConfig(
        api_version=API_VERSION["llm-d"],
        plugins=(
            Plugin(type="approx-prefix-cache-producer", parameters=prefix),
            Plugin(type="inflight-load-producer"),
            Plugin(
                type="prefix-cache-affinity-filter", parameters={"peakPrefillThroughput": prefill_tokens_per_second}
            ),
            Plugin(type="token-load-scorer"),
            Plugin(type="max-score-picker"),
        ),
        profiles=(
            Profile(
                name="default",
                plugins=(
                    ProfilePlugin(ref="prefix-cache-affinity-filter"),
                    ProfilePlugin(ref="token-load-scorer", weight=1.0),
                    ProfilePlugin(ref="max-score-picker"),
                ),
            ),
        ),
    )


def disaggregated_picker(
    *, model: str, block_tokens: int, hash_seed: str, events_port: int, render_url: str, holders: int
) -> PickerConfig:
    """Prefill where the prefix is, by the engines' own cache events; decode where it is quiet (llm-d only).

    holders: endpoints × tiers that may hold one block; fewer in the index, and warm ones are forgotten.
    """
    precise = "precise-prefix-cache-producer"
    pd = "always-disagg-pd-decider"
    events: dict[str, JsonValue] = {
        "tokenProcessorConfig": {"blockSizeTokens": block_tokens, "hashSeed": hash_seed},
        "indexerConfig": {"kvBlockIndexConfig": {"inMemoryConfig": {"podCacheSize": holders}}},
        "kvEventsConfig": {
            "topicFilter": "kv@",
            "discoverPods": True,
            "podDiscoveryConfig": {"socketPort": events_port},
        },
    }
    return PickerConfig(
        api_version=API_VERSION["llm-d"],
        plugins=(
            Plugin(type=pd),
            Plugin(type="disagg-profile-handler", parameters={"deciders": {"prefill": pd}}),
            Plugin(type="prefill-filter"),
            Plugin(type="decode-filter"),
            Plugin(
                type="token-producer", parameters={"modelName": model, "vllm": {"url": render_url, "timeout": "30s"}}
            ),
            Plugin(type="endpoint-notification-source"),
            Plugin(type=precise, parameters=events),
            Plugin(type="inflight-load-producer", parameters={"prefixMatchInfoProducerName": precise}),
            Plugin(type="prefix-cache-scorer", parameters={"prefixMatchInfoProducerName": precise}),
            Plugin(type="active-request-scorer"),
            Plugin(type="token-load-scorer"),
            Plugin(type="queue-scorer"),
            Plugin(type="kv-cache-utilization-scorer"),
            Plugin(type="max-score-picker"),
        ),
        profiles=(
            _profile("prefill", "prefill-filter", "prefix-cache-scorer", "active-request-scorer", "token-load-scorer"),
            _profile("decode", "decode-filter", "active-request-scorer", "queue-scorer", "kv-cache-utilization-scorer"),
        ),
        sources=(("endpoint-notification-source", (precise,)),),
    )


def _profile(name: str, role_filter: str, *scorers: str) -> Profile:
    return Profile(
        name=name,
        plugins=(
            ProfilePlugin(ref=role_filter),
            *(ProfilePlugin(ref=scorer, weight=PREFIX_WEIGHT if "prefix" in scorer else 1.0) for scorer in scorers),
            ProfilePlugin(ref="max-score-picker"),
        ),
    )
