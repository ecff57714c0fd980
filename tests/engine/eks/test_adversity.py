"""The EKS stack when AWS is slow to agree, when the block has not started, and when a policy has something against it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox import cluster
from sandbox.cluster import Layout, Profile
from tests.support.cluster import get, started
from tests.support.eks_stack import OTHER_RESERVATION, Eks, block, eks
from tests.support.pulumi import PROJECT

PACK = str(PROJECT / "policies")
MOST_TRIES = 14


def made_types(made: Eks) -> Counter[str]:
    """How many of each type AWS' state in the stack has."""
    return Counter(resource["type"] for resource in made.stack.resources() if resource["type"].startswith("aws:"))


def test_each_kind_of_resource_fails_once_and_up_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with started(tmp_path / "cluster", profile=Profile.CONTROL_PLANE) as layout, eks(layout, tmp_path) as made:
        foreseen = Counter(step.type for step in made.stack.preview().succeeded().steps if step.type.startswith("aws:"))
        assert len(foreseen) > 30
        made.cloud.inject(
            *(
                {"type": kind, "call": "create", "fault": "error", "times": 1, "message": "AWS says no, once"}
                for kind in sorted(foreseen)
            )
        )
        refusals = set()
        for _ in range(MOST_TRIES):
            outcome = made.stack.up("--continue-on-error")
            if outcome.code == 0:
                break
            assert "AWS says no, once" in outcome.text
            refusals.add(outcome.text.count("AWS says no, once"))
        else:
            raise AssertionError(f"not up after {MOST_TRIES} tries")
        assert refusals
        assert made_types(made) == foreseen
        assert made.stack.up("--expect-no-changes").succeeded().changes == {}


def nodes(layout: Layout) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(layout, "nodes", "--selector=llm-serving/pool=accelerators")["items"]
    return found


def test_with_a_block_that_has_not_started_up_ends_and_the_engines_start_by_themselves_with_it(tmp_path: Path) -> None:
    with started(tmp_path / "cluster", profile=Profile.CONTROL_PLANE) as layout, eks(layout, tmp_path) as made:
        later = block(starts_in=timedelta(hours=30))
        made.cloud.sell(later)
        made.stack.up().succeeded()
        assert nodes(layout) == []
        assert made.stack.outputs()["proof"]["why"]
        assert made.stack.outputs()["block"]["state"] == "scheduled"
        # The block starts: nobody runs pulumi, the scheduled action raises the group, and the waiting pod is placed.
        made.cloud.set_clock(datetime.fromisoformat(later["start"]) + timedelta(minutes=6))
        cluster.kubectl(
            layout,
            "wait",
            "pods",
            "--namespace=serving",
            "--selector=llm-serving/engine=unified",
            "--for=condition=Ready",
            "--timeout=120s",
        )
        assert len(nodes(layout)) == 1
        # What was not waited for is waited for now, and the group's size is what it is already; the pods stay.
        (before,) = get(layout, "pods", "--namespace=serving", "--selector=llm-serving/engine=unified")["items"]
        outcome = made.stack.up().succeeded()
        assert {step.name for step in outcome.steps if step.operation == "update"} == {
            "unified",
            "hydration",
            "accelerators",
        }
        (after,) = get(layout, "pods", "--namespace=serving", "--selector=llm-serving/engine=unified")["items"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        # Forty minutes before the end EKS takes the nodes.
        made.cloud.set_clock(datetime.fromisoformat(later["end"]) - timedelta(minutes=39))
        cluster.kubectl(
            layout, "wait", "nodes", "--selector=llm-serving/pool=accelerators", "--for=delete", "--timeout=60s"
        )


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stack that is only previewed: no control plane is needed, its cluster does not exist yet."""
    directory = tmp_path_factory.mktemp("policies")
    with started(directory / "cluster", profile=Profile.CONTROL_PLANE) as layout, eks(layout, directory) as made:
        yield made


def test_the_policy_pack_has_nothing_against_the_stack(configured: Eks) -> None:
    outcome = configured.stack.preview("--policy-pack", PACK).succeeded()
    assert "llm-serving@" in outcome.text
    assert "violation" not in outcome.text.lower()
    assert "can't run policy" not in outcome.text


def test_a_violation_stops_the_preview_with_its_remedy(configured: Eks) -> None:
    auth = {"kind": "jwt", "issuer": "https://i.example", "audiences": ["a"], "jwks_uri": "https://i.example/k"}
    certificate = "arn:aws:acm:us-west-2:123456789012:certificate/1"
    configured.configure(
        gateway={
            "exposure": "internet-facing",
            "callers": ["0.0.0.0/0"],
            "port": 443,
            "certificate_arn": certificate,
            "auth": auth,
        }
    )
    outcome = configured.stack.preview("--policy-pack", PACK)
    assert outcome.code != 0
    assert "no-port-open-to-the-world" in outcome.text
    assert "gateway.callers" in outcome.text


def test_an_unknown_block_stops_the_preview_before_any_resource(configured: Eks) -> None:
    configured.configure(capacity_block={"reservation": OTHER_RESERVATION})
    outcome = configured.stack.preview()
    assert outcome.code != 0
    assert "block-unknown" in outcome.text
    assert "Traceback" not in outcome.text
    assert {step.type for step in outcome.steps} <= {"pulumi:pulumi:Stack", "pulumi:providers:aws"}
