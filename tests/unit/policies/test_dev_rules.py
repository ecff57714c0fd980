"""Policy rules for pods and namespaces of any environment: each refuses what it is for, and leaves alone what is right."""

from __future__ import annotations

from typing import Any

import pytest

from policies import network, pods
from policies.network import NAMESPACE, POLICY
from policies.rule import Resource

RULES = {rule.name: rule for rule in pods.RULES}
RIGHT: dict[str, Any] = {
    "name": "server",
    "image": "registry.k8s.io/lws/lws:v0.9.0",
    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
    "securityContext": {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}},
}
POD: dict[str, Any] = {"automountServiceAccountToken": False, "containers": [RIGHT]}


def deployment(*, container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {**POD, "containers": [{**RIGHT, **(container or {})}], **(pod or {})}}}}


def group(
    *, worker: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, surge: Any = 0
) -> dict[str, Any]:
    template = {"spec": {**POD, "containers": [{**RIGHT, **(worker or {})}]}}
    return {
        "metadata": {
            "annotations": {"pulumi.com/waitFor": "condition=Available"} if annotations is None else annotations
        },
        "spec": {
            "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": surge}},
            "leaderWorkerTemplate": {"leaderTemplate": {"spec": POD}, "workerTemplate": template},
        },
    }


def image(reference: str) -> dict[str, Any]:
    return deployment(container={"image": reference})


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(
        ("images-pinned", image(reference), reference)
        for reference in (
            "a/b",
            "a/b:latest",
            "a/b:main",
            "a/b:v0",
            "a/b:nightly",
            "registry:5000/b",
            "vllm/vllm-openai:kimi-k31",
        )
    ),
    ("images-pinned", group(worker={"image": "a/b:latest"}), "a/b:latest"),
    ("images-pinned", deployment(pod={"initContainers": [{**RIGHT, "image": "a/c:edge"}]}), "a/c:edge"),
    ("images-pinned", {"spec": {"containers": [{**RIGHT, "image": "a/pod:latest"}]}}, "a/pod:latest"),
    ("images-pinned", {"spec": {"jobTemplate": image("a/cron:latest")}}, "a/cron:latest"),
    ("resources-requested", deployment(container={"resources": {}}), "no cpu and no memory"),
    ("resources-requested", deployment(container={"resources": {"requests": {"cpu": "1"}}}), "no memory"),
    ("no-default-token", deployment(pod={"automountServiceAccountToken": None}), "automountServiceAccountToken"),
    ("no-default-token", deployment(pod={"automountServiceAccountToken": True}), "automountServiceAccountToken"),
    (
        "no-secret-in-plain-text",
        deployment(container={"env": [{"name": "HF_TOKEN", "value": "hf_x"}]}),
        "HF_TOKEN in plain text",
    ),
    (
        "no-escalation",
        deployment(container={"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        "gain",
    ),
    ("no-escalation", deployment(container={"securityContext": {"allowPrivilegeEscalation": False}}), "system call"),
    ("groups-awaited", group(annotations={}), "pulumi.com/waitFor"),
    ("no-spare-group", group(surge=1), "maxSurge"),
    ("no-spare-group", group(surge=None), "maxSurge"),
]


def kind_of(properties: dict[str, Any]) -> str:
    return pods.LEADER_WORKER_SET if "leaderWorkerTemplate" in properties["spec"] else "kubernetes:apps/v1:Deployment"


@pytest.mark.parametrize(
    ("name", "properties", "said"), REFUSED, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(REFUSED)]
)
def test_a_rule_refuses_what_it_is_for_and_says_what_it_saw(name: str, properties: dict[str, Any], said: str) -> None:
    (text,) = RULES[name].violations(kind_of(properties), properties)
    assert said in text


def test_every_rule_is_shown_to_refuse_something() -> None:
    assert {name for name, *_ in REFUSED} == set(RULES)


@pytest.mark.parametrize(
    "properties",
    [
        deployment(),
        group(),
        image(f"lmsysorg/sglang:dev-kimi-k31-pro@sha256:{'0' * 64}"),
        image("docker.io/envoyproxy/envoy:distroless-v1.40.0"),
        deployment(pod={"serviceAccountName": "picker", "automountServiceAccountToken": None}),
        deployment(
            container={"env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "t"}}}]}
        ),
        deployment(
            container={"securityContext": {"allowPrivilegeEscalation": False}},
            pod={"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        ),
    ],
)
def test_what_is_right_passes_every_rule(properties: dict[str, Any]) -> None:
    assert [text for rule in RULES.values() for text in rule.violations(kind_of(properties), properties)] == []


def namespace(name: str) -> Resource:
    return Resource(type=NAMESPACE, properties={"metadata": {"name": name}})


def inhabitant(name: str) -> Resource:
    return Resource(
        type="kubernetes:apps/v1:Deployment", properties={**deployment(), "metadata": {"name": "x", "namespace": name}}
    )


def shut(name: str, *directions: str, **spec: Any) -> Resource:
    return Resource(
        type=POLICY,
        properties={
            "metadata": {"namespace": name},
            "spec": {"podSelector": {}, "policyTypes": list(directions), **spec},
        },
    )


def test_a_namespace_of_ours_with_pods_must_refuse_by_default_in_both_directions() -> None:
    (rule,) = network.STACK_RULES
    ours = [namespace("serving"), inhabitant("serving")]
    assert [*rule.check([*ours, shut("serving", "Ingress", "Egress")])] == []
    assert [*rule.check([*ours, shut("serving", "Ingress"), shut("serving", "Egress")])] == []
    for lacking, policies in (
        ("Egress and Ingress", []),
        ("Egress", [shut("serving", "Ingress")]),
        ("Egress and Ingress", [shut("elsewhere", "Ingress", "Egress")]),
        ("Egress and Ingress", [shut("serving", "Ingress", "Egress", podSelector={"matchLabels": {"a": "b"}})]),
        ("Egress and Ingress", [shut("serving", "Ingress", "Egress", ingress=[{}])]),
    ):
        (text,) = rule.check([*ours, *policies])
        assert f"the namespace serving have no default for {lacking}:" in text


def test_namespaces_that_others_made_or_that_are_empty_are_left_alone() -> None:
    (rule,) = network.STACK_RULES
    assert [*rule.check([inhabitant("kube-system"), namespace("empty")])] == []
