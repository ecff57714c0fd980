"""Engines that are several pods each, as LeaderWorkerSets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.serving.pods import PodTemplate

SET_LABEL, INDEX_LABEL = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/worker-index"
"""Set by the controller on every pod of a set; the leader has index 0."""

AWAITED = "condition=Available"
"""The controller takes it back while a rollout is under way, and says which generation it has seen."""


@dataclass(frozen=True, kw_only=True)
class EngineGroupArgs:
    """groups: engines. pods: of each, leader included. ready_seconds: how long one group may take to answer."""

    namespace: str
    groups: int
    pods: int
    leader: PodTemplate
    worker: PodTemplate
    labels: dict[str, str]
    ready_seconds: int


class EngineGroup(pulumi.ComponentResource):
    """A LeaderWorkerSet, and a disruption budget over its leaders.

    A pod's end replaces its whole group, since the ranks of an engine can't rejoin. A rollout takes one group after the other
    and needs no spare nodes. The controller makes a headless Service of the set's name, by which pods find each other.

    ready: the set, all of whose groups answer; what sends requests depends on it.
    """

    def __init__(self, name: str, *, args: EngineGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:EngineGroup", name, {}, opts)
        k8s.policy.v1.PodDisruptionBudget(
            name,
            metadata={"name": name, "namespace": args.namespace, "labels": args.labels},
            spec={"maxUnavailable": 1, "selector": {"matchLabels": {SET_LABEL: name, INDEX_LABEL: "0"}}},
            opts=pulumi.ResourceOptions(parent=self),
        )
        timeout = f"{args.groups * args.ready_seconds}s"
        self.ready: list[pulumi.Resource] = [
            k8s.apiextensions.CustomResource(
                name,
                api_version="leaderworkerset.x-k8s.io/v1",
                kind="LeaderWorkerSet",
                metadata={
                    "name": name,
                    "namespace": args.namespace,
                    "labels": args.labels,
                    "annotations": {"pulumi.com/waitFor": AWAITED},
                },
                spec=spec(args),
                opts=pulumi.ResourceOptions(
                    parent=self, custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout)
                ),
            )
        ]
        self.register_outputs({})


def spec(args: EngineGroupArgs) -> dict[str, Any]:
    """The set's spec, with the controller's defaults written out so that a diff has nothing to guess."""
    return {
        "replicas": args.groups,
        "startupPolicy": "LeaderCreated",
        "networkConfig": {"subdomainPolicy": "Shared"},
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1, "partition": 0},
        },
        "leaderWorkerTemplate": {
            "size": args.pods,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": args.leader.manifest(),
            "workerTemplate": args.worker.manifest(),
        },
    }
