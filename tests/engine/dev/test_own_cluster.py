"""`make up` and `make down` on a cluster that the user brings, and what a kill in the middle leaves to go on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sandbox.cluster import Layout
from sandbox.dev.pulumi import Stack
from sandbox.images import make_bundle
from sandbox.toolchain import built_engine
from tests.support.cluster import get
from tests.support.dev import dev_config, everything
from tests.support.pulumi import PROJECT

SERVING = "llm-serving"


@pytest.fixture
def checkout(node_cluster: Layout, tmp_path: Path) -> Path:
    """This checkout with a state of its own, whose `dev-own` takes images and charts from a mirror: a site without internet."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    for entry in PROJECT.iterdir():
        if entry.name not in {".state", "Pulumi.dev-own.yaml"}:
            (directory / entry.name).symlink_to(entry)
    bundle = tmp_path / "artifacts"
    make_bundle(bundle)
    config = dev_config(node_cluster, bundle)
    config["kubernetes"] = {}  # KUBECONFIG says where
    keys = {f"llm-serving:{key}": value for key, value in config.items() if ":" not in key}
    (directory / "Pulumi.dev-own.yaml").write_text(yaml.safe_dump({"config": keys}))
    return directory


@pytest.fixture
def make(node_cluster: Layout, checkout: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """What `make up` and `make down` run, in a session of its own; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(command: str) -> subprocess.Popen[str]:
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "sandbox.dev", command],
                cwd=checkout,
                env={
                    **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
                    "KUBECONFIG": str(node_cluster.kubeconfig),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_up_goes_on_after_a_kill_in_the_middle_and_doubles_nothing_and_down_leaves_nothing(
    node_cluster: Layout, checkout: Path, make: Callable[[str], subprocess.Popen[str]]
) -> None:
    before = everything(node_cluster)
    assert not any(SERVING in each for each in before), "the dev stack of other tests is still there"
    killed = make("up")
    # In the middle: some objects are there, the engines are not.
    while not get(node_cluster, "pods", "--all-namespaces", "--selector=app.kubernetes.io/name=store")["items"]:
        assert killed.poll() is None, killed.communicate()[0]
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    again = make("up")
    said = again.communicate()[0]
    assert again.returncode == 0, said
    assert "Kubernetes v1." in said
    assert "Smoke check: passed" in said
    assert f"kubectl --namespace {SERVING} port-forward service/unified-router" in said
    assert "pending operations" not in said
    stack = Stack(engine=built_engine(), name="dev-own", project=checkout, state=checkout / ".state" / "pulumi")
    names = Counter(
        (resource["type"], resource["outputs"]["metadata"].get("namespace"), resource["outputs"]["metadata"]["name"])
        for resource in stack.deployment()["resources"]
        if "metadata" in resource.get("outputs", {})
    )
    assert len(names) > 50
    assert [name for name, count in names.items() if count > 1] == []
    deployments = get(node_cluster, "deployments", f"--namespace={SERVING}")["items"]
    assert deployments
    assert all(each["status"]["replicas"] == each["spec"]["replicas"] for each in deployments)

    down = make("down")
    said = down.communicate()[0]
    assert down.returncode == 0, said
    assert everything(node_cluster) - before == set()
    assert not (checkout / ".state").exists()
