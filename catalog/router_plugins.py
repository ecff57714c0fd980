"""Plugins of the endpoint pickers and their parameters, by release. Both refuse or silently drop what is not here."""

from __future__ import annotations

from collections.abc import Mapping

Parameters = Mapping[str, "Parameters | None"]
"""Name of a parameter → its own parameters, or None where it is a plain value."""


def _plain(*names: str) -> Parameters:
    return dict.fromkeys(names)


_APPROXIMATE = _plain(
    "autoTune", "blockSizeTokens", "maxPrefixBlocksToMatch", "maxPrefixTokensToMatch", "lruCapacityPerServer"
)

PLUGINS: Mapping[str, Mapping[str, Parameters]] = {
    "llm-d": {
        "always-disagg-pd-decider": {},
        "disagg-profile-handler": {
            "deciders": _plain("prefill", "encode"),
            "profiles": _plain("decode", "prefill", "encode"),
            "stageOrder": None,
        },
        "single-profile-handler": {},
        "prefill-filter": {},
        "decode-filter": {},
        "token-producer": {
            "modelName": None,
            "vllm": _plain("url", "timeout", "mmTimeout"),
            "estimate": _plain("image", "video"),
        },
        "precise-prefix-cache-producer": {
            "tokenProcessorConfig": _plain("blockSizeTokens", "hashSeed", "hashAlgorithm"),
            "indexerConfig": {
                "kvBlockIndexConfig": {
                    "inMemoryConfig": _plain("size", "podCacheSize"),
                    "redisConfig": _plain("address"),
                    "costAwareMemoryConfig": _plain("size"),
                    "enableMetrics": None,
                    "metricsLoggingInterval": None,
                },
                "kvCacheBackendConfigs": None,
            },
            "kvEventsConfig": {
                "zmqEndpoint": None,
                "topicFilter": None,
                "concurrency": None,
                "engineType": None,
                "discoverPods": None,
                "podDiscoveryConfig": _plain("podLabelSelector", "podNamespace", "socketPort", "replaySocketPort"),
            },
            "speculativeIndexing": None,
            "speculativeTTL": None,
        },
        "endpoint-notification-source": {},
        "approx-prefix-cache-producer": _APPROXIMATE,
        "prefix-cache-scorer": _plain("prefixMatchInfoProducerName", "matchLengthWeight", "matchLengthScaleTokens"),
        "prefix-cache-affinity-filter": _plain(
            "affinityThreshold",
            "explorationProbability",
            "maxTTFTPenaltyMs",
            "ttftSource",
            "peakPrefillThroughput",
            "prefixMatchInfoProducerName",
            "inFlightLoadProducerName",
            "latencyPredictionInfoProducerName",
        ),
        "token-load-scorer": _plain("queueThresholdTokens", "inFlightLoadProducerName"),
        "active-request-scorer": _plain("idleThreshold", "maxBusyScore", "inFlightLoadProducerName"),
        "inflight-load-producer": _plain(
            "addEstimatedOutputTokens",
            "outputRatio",
            "maxEstimatedOutputTokens",
            "prefixMatchInfoProducerName",
            "syncCrossReplicaState",
        ),
        "queue-scorer": {},
        "kv-cache-utilization-scorer": {},
        "max-score-picker": _plain("maxNumOfEndpoints"),
        "core-metrics-extractor": _plain("engineLabelKey", "defaultEngine", "engineConfigs"),
    },
    "inference-extension": {
        "single-profile-handler": {},
        "approx-prefix-cache-producer": _APPROXIMATE,
        "prefix-cache-scorer": {},
        "prefix-cache-affinity-filter": _plain("affinityThreshold", "explorationProbability", "maxTTFTPenaltyMs"),
        "token-load-scorer": _plain("queueThresholdTokens"),
        "running-requests-size-scorer": {},
        "inflight-load-producer": {},
        "queue-scorer": {},
        "kv-cache-utilization-scorer": {},
        "max-score-picker": _plain("maxNumOfEndpoints"),
        "core-metrics-extractor": _plain("engineLabelKey", "engineConfigs"),
    },
}
"""llm-d: router v0.10.0 (llm-d-router@ebab6879, plugin sources). inference-extension: v1.5.0, pkg/epp/framework/plugins."""
