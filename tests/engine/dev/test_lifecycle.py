"""The dev stack on the real engine and a real node, from nothing to nothing.

The tests build on each other, in this order, and begin with the stack as its fixture left it: up.
"""

from __future__ import annotations

import threading

from sandbox import cluster
from sandbox.cluster import Layout
from tests.support.cluster import get
from tests.support.dev import Dev, changed, dev_config, everything

SERVING = "llm-serving"


def test_up_ends_with_an_answered_request_through_each_router(dev: Dev) -> None:
    outputs = dev.stack.outputs()
    assert outputs["model"] == "moonshotai/Kimi-K3.1-Pro"
    assert outputs["smoke"].startswith("passed")
    for shape in outputs["endpoints"]:
        job = get(dev.layout, "job", f"smoke-{shape}", f"--namespace={SERVING}")
        assert job["status"]["succeeded"] == 1


def test_a_second_up_changes_nothing(dev: Dev) -> None:
    assert dev.stack.up("--expect-no-changes").succeeded().changes == {}


def test_a_refresh_finds_nothing_changed(dev: Dev) -> None:
    dev.stack.refresh("--expect-no-changes").succeeded()
    assert dev.stack.up("--expect-no-changes").succeeded().changes == {}


class MostPods:
    """Watches the engines' pods and keeps the largest number that were there and not on their way out."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.most, self.stopped = layout, 0, threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self) -> MostPods:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.stopped.is_set():
            pods = get(self.layout, "pods", f"--namespace={SERVING}", "--selector=llm-d.ai/role=unified")["items"]
            self.most = max(self.most, sum("deletionTimestamp" not in pod["metadata"] for pod in pods))


def test_a_changed_engine_setting_touches_the_engines_and_their_proof_and_takes_no_spare_replica(dev: Dev) -> None:
    config = dev_config(dev.layout, dev.stack.directory / "artifacts")
    dev.stack.configure(changed(config, "simulator.first_token_ms", 30))
    with MostPods(dev.layout) as pods:
        outcome = dev.stack.up().succeeded()
    touched = {step.name: step.operation for step in outcome.steps if step.operation != "same"}
    assert {name for name, operation in touched.items() if operation == "update"} == {"unified", "prefill", "decode"}
    assert {name for name in touched if name not in {"unified", "prefill", "decode"}} == {
        "smoke-unified",
        "smoke-disaggregated",
    }
    replicas = get(dev.layout, "deployment", "unified", f"--namespace={SERVING}")["spec"]["replicas"]
    assert pods.most == replicas


def test_a_smoke_check_that_fails_fails_up_and_says_why(dev: Dev) -> None:
    scale(dev.layout, replicas=0)
    job = next(
        r["urn"] for r in dev.stack.resources() if r["urn"].endswith("::smoke-unified") and "batch/v1" in r["type"]
    )
    outcome = dev.stack.up("--target-replace", job)
    assert outcome.code != 0
    assert "'smoke-unified' was created but failed to initialize" in outcome.text
    # The check's words, and in them those of the picker.
    assert "moonshotai/Kimi-K3.1-Pro is not listed" in outcome.text
    assert "no pods available" in outcome.text
    scale(dev.layout, replicas=2)
    dev.stack.up().succeeded()


def scale(layout: Layout, *, replicas: int) -> None:
    cluster.kubectl(layout, "scale", "deployment/unified", f"--replicas={replicas}", f"--namespace={SERVING}")
    cluster.kubectl(layout, "rollout", "status", "deployment/unified", f"--namespace={SERVING}", "--timeout=60s")


def test_a_model_that_the_hub_lacks_fails_up_with_the_hubs_reason_and_leaves_the_engines_alone(dev: Dev) -> None:
    config = dev_config(dev.layout, dev.stack.directory / "artifacts")
    dev.stack.configure(changed(config, "model.repo", "example/absent"))
    outcome = dev.stack.up()
    assert outcome.code != 0
    assert "example/absent" in outcome.text
    assert "'staging' was created but failed to initialize" in outcome.text
    assert not [step for step in outcome.steps if step.name == "unified" and step.operation != "same"]
    dev.stack.configure(config)
    dev.stack.up().succeeded()


def test_destroy_leaves_no_object_of_ours(dev: Dev) -> None:
    dev.stack.destroy().succeeded()
    assert dev.stack.resources() == []
    assert everything(dev.layout) - dev.before == set()
