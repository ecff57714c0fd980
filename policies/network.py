"""The network of our namespaces: nothing is allowed that was not listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.pods import WORKLOADS
from policies.rule import Resource, StackRule, items, part

POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
NAMESPACE = "kubernetes:core/v1:Namespace"
LEFT_OPEN = {
    "nvidia": "drivers and exporters of NVIDIA's charts, which do not say what they need to reach; no requests pass there"
}
"""Namespaces that the rule does not look at, and why."""

DIRECTIONS = {"Ingress", "Egress"}


def _open_namespaces(resources: Sequence[Resource]) -> Iterator[str]:
    """Namespaces that the program makes, in which it runs pods, and whose pods are not shut off by default."""
    made = {part(each.properties, "metadata", "name") for each in resources if each.type == NAMESPACE}
    populated = {part(each.properties, "metadata", "namespace") for each in resources if each.type in WORKLOADS}
    closed: dict[str, set[str]] = {}
    for each in resources:
        spec = part(each.properties, "spec") or {}
        if each.type == POLICY and not spec.get("podSelector") and not spec.get("ingress") and not spec.get("egress"):
            closed.setdefault(str(part(each.properties, "metadata", "namespace")), set()).update(
                items(spec.get("policyTypes"))
            )
    for namespace in sorted(str(name) for name in (made & populated) - set(LEFT_OPEN)):
        still_open = DIRECTIONS - closed.get(namespace, set())
        if still_open:
            yield (
                f"Pods in the namespace {namespace} have no default for {' and '.join(sorted(still_open))}: anyone may talk to "
                "them. Add a NetworkPolicy that selects all pods and allows nothing, and then the flows that are needed."
            )


STACK_RULES = (
    StackRule(
        name="namespaces-closed",
        description="Our namespaces refuse what was not listed.",
        check=_open_namespaces,
    ),
)
