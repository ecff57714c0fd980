"""Requests through both routers of the dev stack: what is cached is used, and a prompt is run apart from its answer."""

from __future__ import annotations

import json
import re
import urllib.request
from collections import Counter
from typing import Any

import pytest

from sandbox import cluster
from sandbox.cluster import Layout
from tests.support.cluster import get
from tests.support.dev import Dev

NAMESPACE = "llm-serving"
WORDS_IN_PREFIX = 600
"""Some ten cache blocks of 64 tokens."""


def post(endpoint: str, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer, and the pod that gave it (the simulator names itself in a header)."""
    request = urllib.request.Request(
        f"{endpoint}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response), str(response.headers["x-inference-pod"])


def prompt(subject: str, question: int) -> str:
    return f"{subject} " * WORDS_IN_PREFIX + f"question {question}"


def pods(layout: Layout, role: str) -> list[str]:
    listed = get(layout, "pods", f"--namespace={NAMESPACE}", f"--selector=llm-d.ai/role={role}")["items"]
    return [pod["metadata"]["name"] for pod in listed]


def finished(layout: Layout, role: str) -> Counter[tuple[str, str]]:
    """How many requests each pod of a role has ended, by (pod, reason), as the engine's own counter says."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in pods(layout, role):
        text = cluster.kubectl(layout, "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8000/proxy/metrics")
        for reason, count in re.findall(r'^vllm:request_success_total\{finish_reason="(\w+)".*\} (\S+)$', text, re.M):
            found[pod, reason] += int(float(count))
    return found


@pytest.mark.parametrize("shape", ["unified", "disaggregated"])
def test_both_shapes_answer_under_the_model_s_name(dev: Dev, shape: str) -> None:
    outputs = dev.stack.outputs()
    answer, _ = post(outputs["endpoints"][shape], {"model": outputs["model"], "prompt": "Say hello.", "max_tokens": 16})
    assert answer["model"] == "moonshotai/Kimi-K3.1-Pro"
    assert answer["usage"]["completion_tokens"] > 0


def test_requests_with_the_same_beginning_stick_to_one_replica_and_different_ones_use_both(dev: Dev) -> None:
    outputs = dev.stack.outputs()
    endpoint, model = outputs["endpoints"]["unified"], outputs["model"]
    subjects = [f"subject-{letter}" for letter in "abcdefgh"]
    served: dict[str, set[str]] = {subject: set() for subject in subjects}
    cached = 0
    for question in range(4):
        for subject in subjects:
            body = {"model": model, "prompt": prompt(subject, question), "max_tokens": 4}
            answer, pod = post(endpoint, body)
            served[subject].add(pod)
            cached += answer["usage"]["prompt_tokens_details"]["cached_tokens"] if question else 0
    assert all(len(replicas) == 1 for replicas in served.values()), served
    assert set().union(*served.values()) == set(pods(dev.layout, "unified"))
    # Of every repeated prompt all but its last block is in the cache.
    assert cached > 0.8 * 3 * len(subjects) * WORDS_IN_PREFIX


def test_a_prompt_is_run_on_a_prefill_leader_and_answered_by_the_decode_pods_in_turn(dev: Dev) -> None:
    outputs = dev.stack.outputs()
    before = {role: finished(dev.layout, role) for role in ("prefill", "decode")}
    requests = 8
    for question in range(requests):
        body = {"model": outputs["model"], "prompt": prompt(f"split-{question}", question), "max_tokens": 4}
        post(outputs["endpoints"]["disaggregated"], body)
    prefilled = finished(dev.layout, "prefill") - before["prefill"]
    decoded = finished(dev.layout, "decode") - before["decode"]
    assert {reason for _, reason in prefilled} == {"remote_decode"}
    assert "remote_decode" not in {reason for _, reason in decoded}
    assert sum(prefilled.values()) == sum(decoded.values()) == requests
    assert {pod for pod, _ in prefilled} <= {"prefill-0", "prefill-1", "prefill-2"}
    assert {pod for pod, _ in decoded} == set(pods(dev.layout, "decode"))


def test_a_prefix_is_prefilled_where_it_is_cached(dev: Dev) -> None:
    outputs = dev.stack.outputs()
    before = finished(dev.layout, "prefill")
    for question in range(5):
        body = {"model": outputs["model"], "prompt": prompt("kept", question), "max_tokens": 4}
        post(outputs["endpoints"]["disaggregated"], body)
    after = finished(dev.layout, "prefill") - before
    assert list(after.values()) == [5]


def test_groups_have_the_guide_s_shape_and_their_pods_know_their_rank(dev: Dev) -> None:
    for role, groups, size in (("prefill", 3, 2), ("decode", 1, 4)):
        found = get(dev.layout, "pods", f"--namespace={NAMESPACE}", f"--selector=llm-d.ai/role={role}")["items"]
        ranks = Counter(pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] for pod in found)
        assert ranks == {str(group): size for group in range(groups)}
        for pod in found:
            variables = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}
            assert variables["LWS_GROUP_SIZE"] == str(size)


def test_no_engine_has_been_killed_or_restarted(dev: Dev) -> None:
    found = get(dev.layout, "pods", f"--namespace={NAMESPACE}", "--selector=app.kubernetes.io/name=engine")["items"]
    assert {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["lastState"]
        for pod in found
        if pod["status"]["containerStatuses"][0]["restartCount"]
    } == {}
