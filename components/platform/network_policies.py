"""The flow table as NetworkPolicies: each row opens its source's way out and its target's way in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from planning.flows import DNS_PORTS, Anywhere, Flow, Pods

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Set on every namespace by the API server itself."""

DNS = {
    "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


@dataclass(frozen=True, kw_only=True)
class NetworkPoliciesArgs:
    """flows: the table. namespaces: ours; names are resolved from all of them."""

    flows: tuple[Flow, ...]
    namespaces: tuple[str, ...]


class NetworkPolicies(pulumi.ComponentResource):
    """What is allowed in namespaces that refuse everything else.

    ready: all policies; pods that talk depend on them, since a refused first try may cost a back-off.
    """

    def __init__(self, name: str, *, args: NetworkPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:platform:NetworkPolicies", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.ready: list[pulumi.Resource] = [
            k8s.networking.v1.NetworkPolicy(
                f"{namespace}-{policy}", metadata={"name": policy, "namespace": namespace}, spec=spec, opts=child
            )
            for namespace, policy, spec in policies(args)
        ]
        self.register_outputs({})


def policies(args: NetworkPoliciesArgs) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Namespace, name and spec of every policy."""
    for namespace in args.namespaces:
        yield namespace, "resolve-names", _egress({}, [DNS], DNS_PORTS, protocols=("UDP", "TCP"))
    for flow in args.flows:
        if isinstance(flow.source, Pods):
            reached = [_peer(flow.target)] if isinstance(flow.target, Pods) else []
            yield flow.source.namespace, f"{flow.name}-out", _egress(flow.source.labels, reached, flow.ports)
        if isinstance(flow.target, Pods):
            allowed = [] if isinstance(flow.source, Anywhere) else [_peer(flow.source)]
            yield flow.target.namespace, f"{flow.name}-in", _ingress(flow.target.labels, allowed, flow.ports)


def _egress(
    labels: dict[str, str], to: list[dict[str, Any]], ports: tuple[int, ...], *, protocols: tuple[str, ...] = ("TCP",)
) -> dict[str, Any]:
    rule = {**({"to": to} if to else {}), "ports": _ports(ports, protocols)}
    return {"podSelector": _selector(labels), "policyTypes": ["Egress"], "egress": [rule]}


def _ingress(labels: dict[str, str], source: list[dict[str, Any]], ports: tuple[int, ...]) -> dict[str, Any]:
    rule = {**({"from": source} if source else {}), "ports": _ports(ports, ("TCP",))}
    return {"podSelector": _selector(labels), "policyTypes": ["Ingress"], "ingress": [rule]}


def _peer(pods: Pods) -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: pods.namespace}},
        "podSelector": _selector(pods.labels),
    }


def _selector(labels: dict[str, str]) -> dict[str, Any]:
    return {"matchLabels": labels} if labels else {}


def _ports(ports: tuple[int, ...], protocols: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"protocol": protocol, "port": port} for port in ports for protocol in protocols]
