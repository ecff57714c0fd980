"""Custom resource definitions of one release, as resources of their own."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s


@dataclass(frozen=True, kw_only=True)
class CrdsArgs:
    """files: paths or addresses of YAML files. The provider reads them: large schemas do not pass through this program."""

    files: tuple[str, ...]


class Crds(pulumi.ComponentResource):
    """Definitions that are managed apart from any chart, since Helm never updates those of a chart.

    ready: what every object of their kinds depends on.
    """

    def __init__(self, name: str, *, args: CrdsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:Crds", name, {}, opts)
        self.ready: list[pulumi.Resource] = [
            k8s.yaml.v2.ConfigGroup(name, files=list(args.files), opts=pulumi.ResourceOptions(parent=self))
        ]
        self.register_outputs({})
