"""Engines that are one pod each."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components.serving.pods import PodTemplate


@dataclass(frozen=True, kw_only=True)
class EngineDeploymentArgs:
    """replicas: engines. selector: labels of their pods that never change. ready_seconds: how long a rollout may take."""

    namespace: str
    replicas: int
    selector: dict[str, str]
    pod: PodTemplate
    ready_seconds: int


class EngineDeployment(pulumi.ComponentResource):
    """A Deployment whose rollout needs no spare node, and its disruption budget.

    ready: the Deployment; what sends requests depends on it.
    """

    def __init__(self, name: str, *, args: EngineDeploymentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:EngineDeployment", name, {}, opts)
        metadata = {"name": name, "namespace": args.namespace, "labels": args.selector}
        k8s.policy.v1.PodDisruptionBudget(
            name,
            metadata=metadata,
            spec={"maxUnavailable": 1, "selector": {"matchLabels": args.selector}},
            opts=pulumi.ResourceOptions(parent=self),
        )
        timeout = f"{args.replicas * args.ready_seconds}s"
        self.ready: list[pulumi.Resource] = [
            k8s.apps.v1.Deployment(
                name,
                metadata=metadata,
                spec={
                    "replicas": args.replicas,
                    "selector": {"matchLabels": args.selector},
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                    "progressDeadlineSeconds": args.ready_seconds,
                    "revisionHistoryLimit": 3,
                    "template": args.pod.manifest(),
                },
                opts=pulumi.ResourceOptions(
                    parent=self, custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout)
                ),
            )
        ]
        self.register_outputs({})
