"""Namespaces in which nothing is allowed that was not listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_kubernetes as k8s

from planning.workload import Quota

Profile = Literal["restricted", "privileged"]
"""Kubernetes' own pod security profiles. restricted: no root, no host access, no privilege. privileged: for pods that mount a
node's disks, which everything stricter refuses."""


@dataclass(frozen=True, kw_only=True)
class NamespaceArgs:
    """One namespace. quota: what it may hold at most; None where there is no limit. profile: what its pods may do."""

    name: str
    quota: Quota | None = None
    profile: Profile = "restricted"


class Namespace(pulumi.ComponentResource):
    """A namespace under a pod security profile, with a quota and no traffic in or out of its pods.

    ready: what everything in it depends on, so that nothing runs there before the restrictions are in force.
    """

    def __init__(self, name: str, *, args: NamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:Namespace", name, {}, opts)
        namespace = k8s.core.v1.Namespace(
            name,
            metadata={"name": args.name, "labels": _labels(args.profile)},
            opts=pulumi.ResourceOptions(parent=self),
        )
        inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        self.ready: list[pulumi.Resource] = [namespace]
        if args.quota:
            self.ready.append(
                k8s.core.v1.ResourceQuota(
                    name,
                    metadata={"name": "quota", "namespace": args.name},
                    spec={
                        "hard": {
                            "pods": str(args.quota.pods),
                            "requests.cpu": f"{args.quota.cpu_millicores}m",
                            "requests.memory": f"{args.quota.memory_mib}Mi",
                            "limits.memory": f"{args.quota.memory_mib}Mi",
                        }
                    },
                    opts=inside,
                )
            )
        self.ready.append(
            k8s.networking.v1.NetworkPolicy(
                f"{name}-default-deny",
                metadata={"name": "default-deny", "namespace": args.name},
                spec={"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
                opts=inside,
            )
        )
        self.name = args.name
        self.register_outputs({"name": args.name})


def _labels(profile: Profile) -> dict[str, str]:
    return {
        "pod-security.kubernetes.io/enforce": profile,
        "pod-security.kubernetes.io/enforce-version": "latest",
    }
