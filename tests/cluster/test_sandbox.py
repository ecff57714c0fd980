"""The embedded cluster: it resumes, refuses what it must, and leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import cluster
from sandbox.cluster import Layout, Profile, SandboxError
from sandbox.cluster.control import only_one, pid_of
from tests.support.cluster import get, leftovers, links_and_groups, started

CHECKOUT = Path(__file__).parent.parent.parent


def sandbox(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *arguments],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_killed_cluster_comes_back_with_its_objects(tmp_path: Path) -> None:
    with started(tmp_path / "state", profile=Profile.CONTROL_PLANE) as layout:
        cluster.kubectl(layout, "create", "namespace", "kept")
        pid = pid_of(layout)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        again = cluster.start(tmp_path / "state", profile=Profile.CONTROL_PLANE)
        assert pid_of(again) != pid
        assert get(again, "namespace", "kept")["status"]["phase"] == "Active"


def test_a_second_up_leaves_a_running_cluster_as_it_is(control_plane: Layout) -> None:
    before = pid_of(control_plane)
    assert cluster.start(control_plane.state, profile=control_plane.profile) == control_plane
    assert pid_of(control_plane) == before


def test_a_program_that_dies_is_started_again(control_plane: Layout) -> None:
    starts = cluster.status(control_plane.state)["kube-scheduler"]["starts"]
    assert isinstance(starts, int)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            command = (process / "cmdline").read_bytes() if (process / "cmdline").exists() else b""
            if b"kube-scheduler" in command and str(control_plane.state).encode() in command:
                os.kill(int(process.name), signal.SIGKILL)
    while cluster.status(control_plane.state)["kube-scheduler"]["starts"] == starts:
        pass
    assert pid_of(control_plane) is not None


def test_down_leaves_no_process_mount_link_group_or_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with started(state, profile=Profile.CONTROL_PLANE) as layout:
        assert leftovers(state)
        assert len(links_and_groups(layout)) > 1
        assert cluster.stop(state)
        assert leftovers(state) == []
        assert links_and_groups(layout) == []


@pytest.mark.parametrize("written", ["", "{", '{"profile": "node"}', '{"profile": "moon", "number": 1}'])
def test_a_half_written_state_directory_is_made_anew(tmp_path: Path, written: str) -> None:
    state = tmp_path / "state"
    (state / "pki").mkdir(parents=True)
    (state / "pki" / "ca.crt").write_text("half")
    (state / "cluster.json").write_text(written)
    if written:  # one start is enough to prove it for all that can't be read
        assert Layout.load(state) is None
        return
    with started(state, profile=Profile.CONTROL_PLANE) as layout:
        assert get(layout, "namespace", "default")["status"]["phase"] == "Active"


def test_two_at_once_are_told_of_each_other(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with only_one(state):
        done = sandbox("--state", str(state), "up", "--profile=control-plane")
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == f"sandbox: another process starts or stops the cluster in {state}. Wait for it and try again."
    )


def test_down_with_nothing_up_says_so_and_is_no_error(tmp_path: Path) -> None:
    done = sandbox("--state", str(tmp_path / "state"), "down")
    assert (done.returncode, done.stdout) == (0, "nothing is up\n")


def test_status_tells_by_its_exit_code_that_nothing_runs(tmp_path: Path) -> None:
    assert sandbox("--state", str(tmp_path / "state"), "status").returncode == 3


def test_who_is_not_root_is_told_why_and_what_to_use_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SandboxError, match="takes root; you are user 1000") as caught:
        cluster.start(tmp_path / "state")
    assert "KUBECONFIG=" in str(caught.value)
    assert not (tmp_path / "state").exists()


def test_a_machine_that_routes_all_private_networks_elsewhere_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = json.dumps([{"dst": "10.0.0.0/8"}])
    program = tmp_path / "bin" / "ip"
    program.parent.mkdir()
    program.write_text(f"""#!/bin/sh\ncase "$*" in *route*) echo '{routes}';; *) echo '[]';; esac\n""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SandboxError, match="no private network is free"):
        cluster.start(tmp_path / "state", profile=Profile.CONTROL_PLANE)
    assert not (tmp_path / "state" / "cluster.json").exists()


def test_a_kernel_that_refuses_namespaces_is_named_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "unshare"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SandboxError, match=r"refuses new namespaces .*Operation not permitted.*KUBECONFIG="):
        cluster.start(tmp_path / "state", profile=Profile.CONTROL_PLANE)


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
