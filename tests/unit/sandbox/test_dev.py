"""`make up` and `make down`: what they refuse, before anything is built or made."""

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox import toolchain
from sandbox.dev import __main__ as dev


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, no cluster of the user's, and no engine: whoever gets as far as choosing one fails."""
    monkeypatch.setattr(dev, "STATE", tmp_path / "state")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(toolchain, "choose_engine", lambda: pytest.fail("an engine was chosen"))
    return tmp_path / "state"


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["dev", command])
    return dev.main()


def kubeconfig(path: Path, server: str) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "c", "user": {}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            }
        )
    )
    return str(path)


class Version(http.server.BaseHTTPRequestHandler):
    """An API server that only tells its version."""

    minor = "30"

    def do_GET(self) -> None:
        body = json.dumps(
            {
                "major": "1",
                "minor": self.minor,
                "gitVersion": f"v1.{self.minor}.1",
                "gitCommit": "",
                "gitTreeState": "",
                "buildDate": "",
                "goVersion": "",
                "compiler": "",
                "platform": "",
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def old_cluster() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Version) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_cluster_that_is_too_old_is_refused_with_both_versions(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], old_cluster: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "config", old_cluster))
    assert run("up", monkeypatch) == 1
    assert "is Kubernetes 1.30; 1.34 or newer is needed" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_named_with_its_kubeconfig(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:9")  # the discard port: nothing listens
    monkeypatch.setenv("KUBECONFIG", path)
    assert run("up", monkeypatch) == 1
    said = capsys.readouterr().err
    assert f"the cluster in KUBECONFIG={path} can't be reached" in said
    assert "unset KUBECONFIG" in said


@pytest.mark.parametrize("content", [None, "not: [a kubeconfig", "{}"])
def test_a_kubeconfig_that_is_none_is_said_so(
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert run("up", monkeypatch) == 1
    assert f"KUBECONFIG={path} can't be read" in capsys.readouterr().err


def test_who_is_not_root_is_told_before_anything_is_built(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert run("up", monkeypatch) == 1
    said = capsys.readouterr().err
    assert "takes root; you are user 1000. Use sudo." in said
    assert "Or use your own cluster: KUBECONFIG=… make up." in said


def test_a_machine_that_lacks_programs_is_told_which_before_anything_is_built(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))  # as on a system without apt-get
    assert run("up", monkeypatch) == 1
    assert "missing: the programs unshare, nsenter, ip" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["up", "down"])
def test_two_at_once_are_told_of_each_other(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with dev.only_one():
        assert run(command, monkeypatch) == 1
    assert "another `make up` or `make down` is at work" in capsys.readouterr().err


def test_down_with_nothing_up_says_so_and_is_no_error(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("down", monkeypatch) == 0
    assert "nothing is up" in capsys.readouterr().err
