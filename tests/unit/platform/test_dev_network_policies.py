"""NetworkPolicies of a flow table, judged by Kubernetes' own rules for them: the union of what each policy allows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from components.platform.network_policies import NetworkPoliciesArgs, policies
from planning.flows import Anywhere, ApiServer, Flow, Pods

NAMESPACES = ("serving", "weights")
PODS = st.builds(
    Pods,
    namespace=st.sampled_from(NAMESPACES),
    labels=st.sampled_from([{"app": "a"}, {"app": "b"}, {"app": "b", "role": "x"}]),
)
FLOWS = st.lists(
    st.tuples(st.one_of(PODS, st.just(Anywhere())), PODS, st.sampled_from([80, 8000, 9000])), max_size=6
).map(
    lambda rows: tuple(Flow(name=f"f{n}", source=s, target=t, ports=(p,), why="") for n, (s, t, p) in enumerate(rows))
)
DENY = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items()


def admits(peers: list[dict[str, Any]] | None, other: Pods) -> bool:
    """No peers: everyone."""
    return peers is None or any(
        matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": other.namespace})
        and matches(peer["podSelector"], other.labels)
        for peer in peers
    )


def one_way(made: list[tuple[str, dict[str, Any]]], pod: Pods, other: Pods, port: int, direction: str) -> bool:
    """Whether a pod's side allows it. https://kubernetes.io/docs/concepts/services-networking/network-policies/"""
    key, peers = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}[direction]
    mine = [
        spec
        for namespace, spec in made
        if namespace == pod.namespace and direction in spec["policyTypes"] and matches(spec["podSelector"], pod.labels)
    ]
    return not mine or any(
        admits(rule.get(peers), other) and {"protocol": "TCP", "port": port} in rule["ports"]
        for spec in mine
        for rule in spec.get(key, [])
    )


def made_of(flows: tuple[Flow, ...]) -> list[tuple[str, dict[str, Any]]]:
    made = [
        (namespace, spec) for namespace, _, spec in policies(NetworkPoliciesArgs(flows=flows, namespaces=NAMESPACES))
    ]
    return [*made, *((namespace, DENY) for namespace in NAMESPACES)]


def can_talk(flows: tuple[Flow, ...], source: Pods, target: Pods, port: int) -> bool:
    made = made_of(flows)
    return one_way(made, source, target, port, "Egress") and one_way(made, target, source, port, "Ingress")


def holds(pods: Pods, pod: Pods) -> bool:
    return pods.namespace == pod.namespace and pods.labels.items() <= pod.labels.items()


@given(FLOWS, PODS, PODS, st.sampled_from([80, 8000, 9000]))
def test_two_pods_of_ours_can_talk_exactly_when_rows_open_both_their_sides(
    flows: tuple[Flow, ...], source: Pods, target: Pods, port: int
) -> None:
    out = any(
        isinstance(flow.source, Pods)
        and isinstance(flow.target, Pods)
        and port in flow.ports
        and holds(flow.source, source)
        and holds(flow.target, target)
        for flow in flows
    )
    inwards = any(
        isinstance(flow.target, Pods)
        and port in flow.ports
        and holds(flow.target, target)
        and (isinstance(flow.source, Anywhere) or holds(flow.source, source))
        for flow in flows
    )
    assert can_talk(flows, source, target, port) is (out and inwards)


@given(FLOWS, PODS, st.sampled_from([80, 8000, 9000]))
def test_who_is_not_ours_gets_in_exactly_where_a_row_lets_anyone_in(
    flows: tuple[Flow, ...], target: Pods, port: int
) -> None:
    stranger = Pods(namespace="default", labels={"app": "a"})
    let_in = any(
        isinstance(flow.source, Anywhere)
        and isinstance(flow.target, Pods)
        and holds(flow.target, target)
        and port in flow.ports
        for flow in flows
    )
    assert can_talk(flows, stranger, target, port) is let_in


def test_the_api_is_reached_by_port_since_its_address_is_no_pod_s() -> None:
    source = Pods(namespace="serving", labels={"app": "a"})
    row = Flow(name="api", source=source, target=ApiServer(), ports=(443, 6443), why="")
    ((namespace, name, spec),) = policies(NetworkPoliciesArgs(flows=(row,), namespaces=()))
    assert (namespace, name) == ("serving", "api-out")
    assert spec["egress"] == [{"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}]


def test_names_are_resolved_from_everywhere_of_ours_and_nothing_else_is_reached_there() -> None:
    made = [
        spec
        for _, name, spec in policies(NetworkPoliciesArgs(flows=(), namespaces=NAMESPACES))
        if name == "resolve-names"
    ]
    assert len(made) == len(NAMESPACES)
    for spec in made:
        (rule,) = spec["egress"]
        (peer,) = rule["to"]
        assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
        assert {(each["protocol"], each["port"]) for each in rule["ports"]} >= {("UDP", 53), ("TCP", 53)}
