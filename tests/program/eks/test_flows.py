"""Who may talk to whom in the EKS environment, read from the table and from the policies that it becomes."""

from __future__ import annotations

from typing import Any

from planning.flows import Anywhere, ApiServer, Flow, Pods
from stacks.eks.flows import flows
from tests.support.eks import planned, settings
from tests.support.eks_program import program


def table(**changes: Any) -> tuple[Flow, ...]:
    return flows(settings(**changes), planned(**changes))


def name(end: Pods | Anywhere | ApiServer) -> str:
    if isinstance(end, Pods):
        return end.labels.get("app.kubernetes.io/name", "engine")
    return type(end).__name__


def test_engines_are_asked_by_router_smoke_check_and_prometheus_only() -> None:
    assert {name(flow.source) for flow in table() if name(flow.target) == "engine"} == {"router", "smoke", "prometheus"}


def test_engines_open_no_connection_at_all() -> None:
    assert [flow for flow in table() if name(flow.source) == "engine"] == []


def test_only_what_moves_weights_reaches_beyond_the_cluster() -> None:
    assert {name(flow.source) for flow in table() if isinstance(flow.target, Anywhere)} == {"staging", "hydration"}


def test_a_proxy_on_the_way_to_the_hub_is_reached_by_staging_only() -> None:
    proxied = {"store": "nvme", "staging": {"proxy": "http://proxy.corp.example:3128"}}
    ports = {name(flow.source): flow.ports for flow in table(weights=proxied) if isinstance(flow.target, Anywhere)}
    assert ports == {"staging": (443, 80, 3128), "hydration": (443, 80)}


def test_only_the_gateway_takes_requests_from_outside() -> None:
    assert {name(flow.target) for flow in table() if isinstance(flow.source, Anywhere)} == {"gateway"}


def test_the_gateway_fetches_an_issuers_keys_only_when_it_checks_tokens() -> None:
    auth = {"kind": "jwt", "issuer": "https://i.example", "audiences": ["a"], "jwks_uri": "https://i.example/k"}
    outgoing = [
        flow
        for flow in table(gateway={"auth": auth})
        if name(flow.source) == "gateway" and isinstance(flow.target, Anywhere)
    ]
    assert [flow.ports for flow in outgoing] == [(443,)]


def test_every_namespace_of_ours_refuses_what_is_not_listed() -> None:
    recording, _ = program()
    denied = {
        policy.inputs["metadata"]["namespace"]
        for policy in recording.of("NetworkPolicy")
        if policy.inputs["metadata"]["name"] == "default-deny"
    }
    assert denied == {"serving", "weights", "monitoring"}


def test_every_pod_that_the_table_names_exists_with_these_labels_and_ports() -> None:
    recording, _ = program()
    pods = [
        (workload.inputs["metadata"]["namespace"], workload.inputs["spec"]["template"])
        for kind in ("apps/v1:Deployment", "DaemonSet", "StatefulSet", "batch/v1:Job")
        for workload in recording.of(kind)
    ]
    for flow in table():
        for end in (flow.source, flow.target):
            if isinstance(end, Pods):
                matching = [
                    template
                    for namespace, template in pods
                    if namespace == end.namespace and end.labels.items() <= template["metadata"]["labels"].items()
                ]
                assert matching, f"{flow.name}: nothing is labelled {end}"
                if end is flow.target:
                    open_ports = {
                        port["containerPort"]
                        for template in matching
                        for container in template["spec"]["containers"]
                        for port in container.get("ports", [])
                    }
                    assert set(flow.ports) <= open_ports, flow.name
