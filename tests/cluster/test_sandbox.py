"""The embedded cluster: it starts once, resumes whatever happened to it, and leaves nothing."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import cluster
from sandbox.cluster import Layout, Profile
from sandbox.cluster.supervised import pid_of
from tests.support.cluster import CHECKOUT, get, leftovers, links_and_groups, sandbox, sandbox_command, started

UP = ("up", "--profile=control-plane")


def kill(layout: Layout) -> None:
    """What the machine does to it when memory runs out."""
    pid = pid_of(layout.state)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Layout]:
    """A cluster that a test may break."""
    with started(tmp_path / "state", profile=Profile.CONTROL_PLANE) as layout:
        yield layout


def test_a_killed_cluster_comes_back_with_its_objects(own: Layout) -> None:
    cluster.kubectl(own, "create", "namespace", "kept")
    before = pid_of(own.state)
    kill(own)
    assert cluster.start(own.state, profile=own.profile) == own
    assert pid_of(own.state) != before
    assert get(own, "namespace", "kept")["status"]["phase"] == "Active"


def test_a_second_up_leaves_a_running_cluster_as_it_is(control_plane: Layout) -> None:
    before = pid_of(control_plane.state)
    assert sandbox(*UP, state=control_plane.state).returncode == 0
    assert pid_of(control_plane.state) == before
    assert cluster.status(control_plane.state)["etcd"]["starts"] == 1


def test_a_program_that_dies_is_started_again(control_plane: Layout) -> None:
    starts = cluster.status(control_plane.state)["kube-scheduler"]["starts"]
    assert isinstance(starts, int)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            command = (process / "cmdline").read_bytes() if (process / "cmdline").exists() else b""
            if b"kube-scheduler" in command and str(control_plane.state).encode() in command:
                os.kill(int(process.name), signal.SIGKILL)
    while cluster.status(control_plane.state)["kube-scheduler"]["starts"] == starts:
        time.sleep(0.1)
    while sandbox("status", state=control_plane.state).returncode != 0:
        time.sleep(0.1)


def test_down_leaves_no_process_mount_link_group_or_file(own: Layout) -> None:
    assert leftovers(own.state)
    assert links_and_groups(own)
    assert sandbox("down", state=own.state).stdout == "stopped, and its state removed\n"
    assert leftovers(own.state) == []
    assert links_and_groups(own) == []
    assert list(own.state.parent.iterdir()) == []


def test_what_etcd_can_not_read_any_more_is_explained_and_replaced_by_an_empty_cluster(own: Layout) -> None:
    cluster.kubectl(own, "create", "namespace", "lost")
    kill(own)
    (own.state / "etcd" / "member" / "snap" / "db").write_bytes(b"half a page")
    done = sandbox(*UP, state=own.state)
    assert done.returncode == 0
    assert "etcd does not start: " in done.stderr
    assert "Its objects are lost: starting an empty cluster." in done.stderr
    after = Layout.load(own.state)
    assert after is not None
    assert after.identity != own.identity
    assert "lost" not in cluster.kubectl(after, "get", "namespaces", "--output=name")


def test_a_killed_cluster_whose_addresses_another_one_took_says_so_and_starts_empty(
    own: Layout, tmp_path: Path
) -> None:
    kill(own)
    while own.link in links_and_groups(own):  # it goes with the namespace
        time.sleep(0.05)
    with started(tmp_path / "other", profile=Profile.CONTROL_PLANE) as other:
        assert other.number == own.number
        done = sandbox(*UP, state=own.state)
        assert done.returncode == 0
        assert f"another cluster has taken {own.service_network}" in done.stderr
        after = Layout.load(own.state)
        assert after is not None
        assert (after.number, after.identity) != (own.number, own.identity)
        for each in (after, other):
            assert get(each, "service", "kubernetes")["spec"]["clusterIP"] == each.api_service_address


def test_of_two_ups_at_once_one_starts_it_and_the_other_is_told(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = sandbox_command(*UP, state=state)
    try:
        both = [subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [each.communicate()[1] for each in both]
        assert sorted(each.returncode for each in both) == [0, 1]
        assert f"sandbox: another process starts or stops the cluster in {state}. Wait for it and try again.\n" in said
    finally:
        cluster.stop(state)


def test_two_clusters_that_start_at_once_take_different_addresses(tmp_path: Path) -> None:
    states = [tmp_path / "one" / "state", tmp_path / "two" / "state"]
    try:
        both = [subprocess.Popen(sandbox_command(*UP, state=state), cwd=CHECKOUT) for state in states]
        assert [each.wait() for each in both] == [0, 0]
        layouts = [Layout.load(state) for state in states]
        assert len({layout.number for layout in layouts if layout}) == 2
    finally:
        for state in states:
            cluster.stop(state)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_up_goes_on_where_it_was_interrupted(tmp_path: Path, how: signal.Signals) -> None:
    state = tmp_path / "state"
    try:
        first = subprocess.Popen(
            sandbox_command(*UP, state=state),
            cwd=CHECKOUT,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        while not (state / "pki" / "ca.crt").exists():  # certificates half made, nothing started
            assert first.poll() is None
        first.send_signal(how)
        said = first.communicate()[1]
        if how is signal.SIGINT:
            assert first.returncode == 130
            assert said == "sandbox: interrupted; the same command goes on where it stopped\n"
        assert sandbox(*UP, state=state).returncode == 0
        assert sandbox("status", state=state).returncode == 0
    finally:
        cluster.stop(state)
    assert leftovers(state) == []


def test_a_half_written_state_directory_is_made_anew(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "pki").mkdir(parents=True)
    (state / "pki" / "ca.crt").write_text("half")
    (state / "cluster.json").write_text('{"profile": "control-')
    with started(state, profile=Profile.CONTROL_PLANE) as layout:
        assert get(layout, "namespace", "default")["status"]["phase"] == "Active"


@pytest.fixture
def below_var_lib() -> Iterator[Path]:
    """A directory below one that the cluster covers for itself, with a name that no mount option or socket path can hold."""
    place = Path(tempfile.mkdtemp(dir="/var/lib", prefix=f"llm-serving: a, {'long ' * 16}"))
    yield place
    shutil.rmtree(place)


def test_it_starts_in_any_directory_and_behind_a_proxy_and_beside_settings_of_another_etcd(below_var_lib: Path) -> None:
    state = below_var_lib / "state"
    nowhere = "http://127.0.0.1:9"
    try:
        done = sandbox(*UP, state=state, HTTPS_PROXY=nowhere, http_proxy=nowhere, ETCD_NAME="other", KUBECONFIG="/none")
        assert (done.returncode, done.stderr) == (0, "")
        assert sandbox("kubeconfig", state=state).stdout == f"{state / 'kubeconfig'}\n"
    finally:
        cluster.stop(state)


FAKE_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "fake-1",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": "fake-1"},
    },
    "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
    },
}
FAKE_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "fake", "namespace": "default"},
    "spec": {
        "containers": [{"name": "c", "image": "none.example/none:1"}],
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    },
}


def test_a_fake_node_gets_ready_and_its_pods_run(control_plane: Layout) -> None:
    for thing in (FAKE_NODE, FAKE_POD):
        cluster.kubectl(control_plane, "apply", "--server-side", "--filename=-", given=json.dumps(thing))
    cluster.kubectl(control_plane, "wait", "node/fake-1", "--for=condition=Ready", "--timeout=30s")
    cluster.kubectl(control_plane, "wait", "pod/fake", "--for=condition=Ready", "--timeout=30s")
    assert get(control_plane, "pod", "fake")["spec"]["nodeName"] == "fake-1"
