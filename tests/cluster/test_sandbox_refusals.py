"""What the sandbox command refuses, each typed in for real: a message that helps, an exit code, and nothing made."""

import subprocess
from pathlib import Path

import pytest

from sandbox import cluster
from sandbox.cluster import Layout
from tests.support.cluster import leftovers, sandbox

UP = ("up", "--profile=control-plane")
OWN_CLUSTER = "Or use your own cluster: KUBECONFIG=… make up."


def possible(*command: str) -> None:
    """Skips the test where even the machine's disguise can't be put on."""
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"`{' '.join(command)}` is not possible here: {done.stderr.strip()}")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.mark.parametrize("command", ["up", "down"])
def test_who_is_not_root_is_told_why_and_what_to_use_instead(command: str, state: Path) -> None:
    possible("unshare", "--user")
    if command == "down":
        state.mkdir()
    done = sandbox(command, state=state, before=["unshare", "--user"])
    assert done.returncode == 1
    assert "takes root; you are user 65534. Use sudo. " + OWN_CLUSTER in done.stderr
    assert not leftovers(state / "cluster.json")


def test_missing_packages_are_named_with_the_command_that_installs_them(state: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("unshare", "nsenter", "ip", "iptables", "ipset", "conntrack"):
        (programs / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    done = sandbox("up", state=state, PATH=str(programs))
    assert done.returncode == 1
    assert "missing: containerd, runc. " in done.stderr
    assert "apt-get install --yes --no-install-recommends containerd runc. " + OWN_CLUSTER in done.stderr
    assert not state.exists()


def test_a_container_without_the_right_to_make_namespaces_is_told_the_kernels_own_words(state: Path) -> None:
    before = ["setpriv", "--bounding-set=-sys_admin"]
    possible(*before)
    done = sandbox("up", state=state, before=before)
    assert done.returncode == 1
    assert "refuses new namespaces (unshare: unshare failed: Operation not permitted). " + OWN_CLUSTER in done.stderr
    assert not state.exists()


def test_what_the_kernel_refuses_inside_the_namespaces_is_named(state: Path) -> None:
    before = ["setpriv", "--bounding-set=-net_admin"]
    possible(*before)
    done = sandbox(*UP, state=state, before=before)
    assert done.returncode == 1
    assert "`ip link add probe0 type veth peer name probe1`: RTNETLINK answers: Operation not permitted" in done.stderr
    assert not state.exists()


READ_ONLY = 'for each in /sys/fs/cgroup /sys/fs/cgroup/*/; do mount -o remount,bind,ro "$each" || true; done; exec "$@"'


def test_control_groups_that_are_read_only_as_in_a_plain_container_are_named(state: Path) -> None:
    before = ["unshare", "--mount", "sh", "-c", f"{{ {READ_ONLY.replace('; exec', '; } 2>/dev/null; exec')}", "sh"]
    possible(*before)
    done = sandbox("up", state=state, before=before)
    assert done.returncode == 1
    assert "no control groups can be made in /sys/fs/cgroup" in done.stderr
    assert OWN_CLUSTER in done.stderr
    assert not state.exists()


def test_a_machine_that_routes_all_private_networks_elsewhere_is_refused(state: Path) -> None:
    before = ["unshare", "--net", "sh", "-c", 'ip link set lo up && ip route add 10.0.0.0/8 dev lo && exec "$@"', "sh"]
    possible(*before)
    done = sandbox(*UP, state=state, before=before)
    assert done.returncode == 1
    assert "no private network is free for the embedded cluster: 10.199.0.0/16 and 10.201.0.0/16 are" in done.stderr
    assert not (state / "cluster.json").exists()


def test_a_disk_without_room_is_told_with_both_figures(state: Path) -> None:
    state.mkdir()
    before = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=64m tmpfs {state} && exec "$@"', "sh"]
    possible(*before)
    done = sandbox("up", state=state, before=before)
    assert done.returncode == 1
    assert "has 63 MiB free, and a new cluster takes up to 2048 MiB" in done.stderr


def test_a_disk_that_fills_up_on_the_way_is_named_with_what_to_do(state: Path) -> None:
    state.mkdir()
    # Room enough when it is asked for; but only a few files fit, so that it runs out among the certificates.
    small = f'mount -t tmpfs -o size=300m,nr_inodes=12 tmpfs {state} && exec "$@"'
    before = ["unshare", "--mount", "sh", "-c", small, "sh"]
    possible(*before)
    done = sandbox(*UP, state=state, before=before)
    assert done.returncode == 1
    assert done.stderr.startswith(f"sandbox: the disk of {state}/")
    assert done.stderr.endswith(
        "is full. Free some room and run the same command again: it goes on where it stopped.\n"
    )


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_directory_with_other_things_in_it_is_left_as_it_is(command: str, state: Path) -> None:
    state.mkdir()
    (state / "thesis.tex").write_text("years of work")
    done = sandbox(command, state=state)
    assert done.returncode == 1
    assert str(state) in done.stderr
    assert (state / "thesis.tex").read_text() == "years of work"
    assert list(state.iterdir()) == [state / "thesis.tex"]


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_state_that_is_no_directory_is_told(command: str, state: Path) -> None:
    state.write_text("a file")
    done = sandbox(command, state=state)
    assert done.returncode == 1
    assert done.stderr.startswith("sandbox: ")
    assert str(state) in done.stderr
    assert state.read_text() == "a file"


def test_another_profile_than_the_one_that_is_there_is_refused(control_plane: Layout) -> None:
    done = sandbox("up", "--profile=node", state=control_plane.state)
    assert done.returncode == 1
    assert "holds a cluster of profile control-plane, and node is asked for. Take it down first" in done.stderr
    assert cluster.running(control_plane.state)


def test_down_with_nothing_up_says_so_and_is_no_error(state: Path) -> None:
    done = sandbox("down", state=state)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing is up\n", "")


def test_status_tells_by_its_exit_code_that_nothing_runs(state: Path) -> None:
    done = sandbox("status", state=state)
    assert (done.returncode, done.stdout) == (3, "not running\n")


def test_a_kubeconfig_that_is_not_there_yet_is_answered_with_the_command_that_makes_it(state: Path) -> None:
    done = sandbox("kubeconfig", state=state)
    assert done.returncode == 1
    assert done.stderr == f"sandbox: there is no cluster in {state}. Start one: sandbox up\n"


def test_a_log_that_does_not_exist_is_answered_with_those_that_do(control_plane: Layout) -> None:
    done = sandbox("logs", "kubelet", state=control_plane.state)
    assert done.returncode == 1
    assert "there is no log of 'kubelet'; there are: etcd, kube-apiserver, kube-controller-manager" in done.stderr
    assert "etcd" in sandbox("logs", state=control_plane.state).stdout.splitlines()


@pytest.mark.parametrize("words", [["restart"], ["up", "--profile=moon"], []])
def test_what_is_no_command_is_answered_with_what_is(words: list[str], state: Path) -> None:
    done = sandbox(*words, state=state)
    assert done.returncode == 2
    assert "usage: sandbox" in done.stderr
