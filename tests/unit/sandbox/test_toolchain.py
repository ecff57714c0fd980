"""The toolchain: which Pulumi is chosen, and what a build does when the machine does not let it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import toolchain
from sandbox.toolchain.build import MODULES
from sandbox.toolchain.catalog import TOOLS


@pytest.fixture
def bin_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all of PATH, and an empty cache."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("LLM_SERVING_CACHE", str(tmp_path / "cache"))
    return place


def program(place: Path, name: str, script: str) -> Path:
    """Puts a shell program into `place`."""
    file = place / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_a_fitting_pulumi_on_path_is_kept_with_its_own_way_of_getting_plugins(bin_only: Path) -> None:
    own = program(bin_only, "pulumi", "echo v3.270.1")
    engine = toolchain.choose_engine()
    assert engine.pulumi == own
    assert engine.environment == {}
    assert "3.270.1" in engine.said


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo v3.100.0", "pulumi 3.100.0 on PATH .* is too old: 3.229.0 or newer"),
        ("echo nonsense", "`pulumi version` gives no version \\(nonsense\\)"),
        ("echo broken >&2; exit 1", "`pulumi version` gives no version \\(broken\\)"),
    ],
)
def test_an_unfit_pulumi_on_path_is_refused_with_what_was_found_and_the_remedy(
    bin_only: Path, script: str, told: str
) -> None:
    program(bin_only, "pulumi", script)
    with pytest.raises(toolchain.ToolchainError, match=told) as caught:
        toolchain.choose_engine()
    assert "take it off PATH" in str(caught.value)


def test_without_go_the_user_is_told_what_to_install_or_to_use_instead(bin_only: Path) -> None:
    with pytest.raises(toolchain.ToolchainError, match="go is not on PATH") as caught:
        toolchain.tool("etcd")
    assert "KUBECONFIG=" in str(caught.value)


def test_a_full_disk_is_named_before_the_build_starts(bin_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bin_only, "go", "exit 0")
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1024**3))
    with pytest.raises(toolchain.ToolchainError, match=r"has 1\.0 GiB free"):
        toolchain.tool("etcd")


def test_a_disk_that_fills_up_during_the_build_is_named_and_nothing_counts_as_built(bin_only: Path) -> None:
    program(bin_only, "go", "echo 'write: no space left on device' >&2; exit 1")
    with pytest.raises(toolchain.ToolchainError, match="the disk is full") as caught:
        toolchain.tool("etcd")
    assert "goes on where it stopped" in str(caught.value)
    assert "etcd" in toolchain.missing()


def test_a_build_that_fails_shows_what_go_said(bin_only: Path) -> None:
    program(bin_only, "go", "echo 'main.go:3: undefined: x' >&2; exit 2")
    with pytest.raises(toolchain.ToolchainError, match=r"building etcd failed \(exit 2\):\nmain.go:3: undefined: x"):
        toolchain.tool("etcd")


def test_a_killed_build_leaves_nothing_that_counts_as_built(bin_only: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    program(bin_only, "go", f": > {started}; exec {shutil.which('tail', path='/usr/bin:/bin')} -f /dev/null")
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox.toolchain", "build", "etcd"], cwd=MODULES.parent.parent
    ) as child:
        while not started.exists():
            assert child.poll() is None
        go = int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])
        child.kill()
    os.kill(go, 9)
    assert "etcd" in toolchain.missing()


def test_a_finished_build_is_found_again_and_go_is_not_asked(bin_only: Path) -> None:
    # The stand-in for go writes the file that its -o argument names, as go build does.
    go = program(bin_only, "go", 'while [ "$1" != -o ]; do shift; done; echo built > "$2"')
    path = toolchain.tool("etcd")
    assert path.read_text() == "built\n"
    go.unlink()
    assert toolchain.tool("etcd") == path


def test_every_tool_has_a_module_with_pinned_sums() -> None:
    for tool in TOOLS.values():
        assert (MODULES / tool.module / "go.mod").is_file()
        assert (MODULES / tool.module / "go.sum").is_file()
