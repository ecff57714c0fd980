"""The embedded cluster's real node: pods run, find each other, keep data, and are kept apart."""

import json
import os
import shutil
import signal
import socket
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog import artifacts
from sandbox import cluster
from sandbox.cluster import Layout, Profile
from sandbox.cluster.supervised import pid_of
from sandbox.images import MIRROR
from tests.support.cluster import get, leftovers, links_and_groups, run_python, started

PYTHON = artifacts.image("python", mirror=MIRROR)
NAMESPACE = "node-test"


def pod(name: str, *command: str, volumes: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes or []]
    container = {"name": "c", "image": PYTHON, "command": list(command), "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {"containers": [container], "volumes": volumes or [], "terminationGracePeriodSeconds": 0},
    }


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": NAMESPACE},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
}
DENY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "deny", "namespace": NAMESPACE},
    "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
}
ASK = (
    "import urllib.request; print(urllib.request.urlopen('http://web.node-test.svc.cluster.local/', timeout=2).status)"
)


@pytest.fixture(scope="module")
def pods(node_cluster: Layout) -> Iterator[Layout]:
    """A server with a volume, a client, and a Service between them."""
    sleep = ("python3", "-c", "import signal; signal.pause()")
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    things = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        CLAIM,
        SERVICE,
        pod("web", "python3", "-m", "http.server", "8000", "--directory", "/data", volumes=claim),
        pod("client", *sleep),
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
    cluster.kubectl(node_cluster, "apply", "--server-side", "--filename=-", given=everything)
    ready = ("--for=condition=Ready", "--timeout=120s", f"--namespace={NAMESPACE}")
    cluster.kubectl(node_cluster, "wait", "pod/web", "pod/client", *ready)
    yield node_cluster
    cluster.kubectl(node_cluster, "delete", "namespace", NAMESPACE)


def test_a_pod_reaches_a_service_by_its_name(pods: Layout) -> None:
    ask_until(pods, allowed=True)


def test_the_host_reaches_a_service_by_its_address(pods: Layout) -> None:
    ask_until(pods, allowed=True)
    address = get(pods, "service", "web", f"--namespace={NAMESPACE}")["spec"]["clusterIP"]
    with urllib.request.urlopen(f"http://{address}/", timeout=5) as answer:
        assert answer.status == 200


def test_a_pod_has_no_way_out_of_the_cluster(pods: Layout) -> None:
    outside = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)"
    done = run_python(pods, "client", outside, namespace=NAMESPACE)
    assert done.returncode != 0
    assert "unreachable" in done.stderr or "timed out" in done.stderr


def test_a_pod_can_not_reach_what_listens_on_all_of_the_hosts_addresses(pods: Layout) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection((pods.host_address, port), timeout=5):
            pass  # the host itself gets through
        ask = f"import socket; socket.create_connection(('{pods.host_address}', {port}), timeout=2)"
        done = run_python(pods, "client", ask, namespace=NAMESPACE)
    assert done.returncode != 0
    assert "timed out" in done.stderr


def test_a_claim_of_the_default_class_holds_data_on_the_node(pods: Layout) -> None:
    write = "open('/data/x', 'w').write('kept')"
    assert run_python(pods, "web", write, namespace=NAMESPACE).returncode == 0
    volume = get(pods, "persistentvolumeclaim", "data", f"--namespace={NAMESPACE}")["spec"]["volumeName"]
    assert (pods.state / "volumes" / volume / "x").read_text() == "kept"


def test_a_network_policy_that_denies_is_enforced_and_its_end_opens_the_way_again(pods: Layout) -> None:
    cluster.kubectl(pods, "apply", "--server-side", "--filename=-", given=json.dumps(DENY))
    ask_until(pods, allowed=False)
    cluster.kubectl(pods, "delete", "networkpolicy", "deny", f"--namespace={NAMESPACE}")
    ask_until(pods, allowed=True)


def ask_until(layout: Layout, *, allowed: bool) -> None:
    """Asks until the answer is the expected one: endpoints and policies follow the API within moments. A refused try takes its time-out."""
    for _ in range(20):
        if (run_python(layout, "client", ASK, namespace=NAMESPACE).returncode == 0) is allowed:
            return
    raise AssertionError(f"the Service is {'refused' if allowed else 'open'} after 20 tries")


def test_nothing_can_be_pulled_that_was_not_loaded(node_cluster: Layout) -> None:
    absent = pod("absent", "true")
    absent["metadata"]["namespace"] = "default"
    absent["spec"]["containers"][0]["image"] = f"{MIRROR}/docker.io/library/absent:1"
    cluster.kubectl(node_cluster, "apply", "--server-side", "--filename=-", given=json.dumps(absent))
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
    cluster.kubectl(node_cluster, "wait", "pod/absent", f"--for={reason}=ErrImagePull", "--timeout=120s")
    cluster.kubectl(node_cluster, "delete", "pod", "absent", "--grace-period=0", "--force")


@pytest.mark.parametrize(
    ("image", "command", "answer"),
    [
        ("python", ["python3", "-c", "import ssl, sqlite3, obstore, huggingface_hub; print('imported')"], "imported"),
        ("vllm-router", ["python3", "-m", "vllm_router.launch_router", "--help"], "--vllm-pd-disaggregation"),
        ("envoy", ["envoy", "--version"], "1.40.0"),
        ("versitygw", ["versitygw", "--version"], "Version"),
    ],
)
def test_an_image_runs_its_program(node_cluster: Layout, image: str, command: list[str], answer: str) -> None:
    job = pod(f"runs-{image}", *command)
    job["metadata"]["namespace"] = "default"
    job["spec"] |= {"restartPolicy": "Never"}
    job["spec"]["containers"][0]["image"] = artifacts.image(image, mirror=MIRROR)
    cluster.kubectl(node_cluster, "apply", "--server-side", "--filename=-", given=json.dumps(job))
    ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
    cluster.kubectl(node_cluster, "wait", f"pod/runs-{image}", ended, "--timeout=120s")
    said = cluster.kubectl(node_cluster, "logs", f"runs-{image}")
    cluster.kubectl(node_cluster, "delete", "pod", f"runs-{image}")
    assert answer in said


@pytest.fixture
def odd_place() -> Iterator[Path]:
    """Below a directory that the cluster covers for itself, with a name that no mount option or socket path can hold."""
    place = Path(tempfile.mkdtemp(dir="/var/lib", prefix=f"llm-serving: a, {'long ' * 16}"))
    yield place
    shutil.rmtree(place)


def test_a_killed_node_comes_back_with_its_pods_and_their_data_in_any_directory_and_leaves_nothing(
    odd_place: Path,
) -> None:
    state = odd_place / "state"
    with started(state, profile=Profile.NODE) as layout:
        claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        web = pod("web", "python3", "-m", "http.server", "8000", "--directory", "/data", volumes=claim)
        things = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, CLAIM, web]
        everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
        cluster.kubectl(layout, "apply", "--server-side", "--filename=-", given=everything)
        ready = ("wait", "pod/web", "--for=condition=Ready", "--timeout=120s", f"--namespace={NAMESPACE}")
        cluster.kubectl(layout, *ready)
        assert run_python(layout, "web", "open('/data/x', 'w').write('kept')", namespace=NAMESPACE).returncode == 0

        pid = pid_of(state)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert cluster.start(state) == layout
        again = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
        cluster.kubectl(layout, "wait", "pod/web", again, "--timeout=120s", f"--namespace={NAMESPACE}")
        cluster.kubectl(layout, *ready)
        assert run_python(layout, "web", "print(open('/data/x').read())", namespace=NAMESPACE).stdout == "kept\n"

        assert len(links_and_groups(layout)) > 1
        assert cluster.stop(state)
        assert leftovers(state) == []
        assert links_and_groups(layout) == []
