"""The LeaderWorkerSet controller: groups of pods that start, fail and are replaced as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.platform.gpu import ChartSource


@dataclass(frozen=True, kw_only=True)
class LeaderWorkerSetsArgs:
    """source: the chart. namespace: exists already. image: with its tag. cpu_millicores, memory_mib: of the controller."""

    source: ChartSource
    namespace: str
    image: str
    cpu_millicores: int
    memory_mib: int

    def values(self) -> dict[str, Any]:
        """Chart values. The chart's own would pull `main` on every start and ask for a whole processor."""
        repository, _, tag = self.image.rpartition(":")
        quantity = {"memory": f"{self.memory_mib}Mi"}
        return {
            "image": {"manager": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"}},
            "podSecurityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "resources": {"requests": {"cpu": f"{self.cpu_millicores}m", **quantity}, "limits": quantity},
            "enableDisaggregatedSet": True,
        }


class LeaderWorkerSets(pulumi.ComponentResource):
    """The controller with its definitions and webhooks.

    ready: what every LeaderWorkerSet depends on; its webhook answers by then.
    """

    def __init__(self, name: str, *, args: LeaderWorkerSetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:LeaderWorkerSets", name, {}, opts)
        self.ready: list[pulumi.Resource] = [
            k8s.helm.v4.Chart(
                name,
                name="lws",
                namespace=args.namespace,
                **args.source.arguments(),
                values=args.values(),
                opts=pulumi.ResourceOptions(parent=self),
            )
        ]
        self.register_outputs({})
