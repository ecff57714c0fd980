"""The size of the real thing: 200 files of 8 GiB (sparse), in bounded memory."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import LocalStore

from sandbox.hub.hub import Repository, file_of
from tests.serving.weights.conftest import Place
from tests.support.staging import MIB, REPO, command

SIZE = 8 * 1024**3
ZEROS_SHA256 = "ebfb4ef19ae410f190327b5ebd312711263bc7579970e87d9c1e2d84e06b3c25"
"""`truncate -s 8G f && sha256sum f` (coreutils)."""
COUNT = 200
LIMIT_BYTES = 1024 * MIB


@pytest.fixture
def large(place: Place, tmp_path: Path) -> Place:
    """A repository of 200 × 8 GiB and one small file, on next to no disk."""
    zeros = tmp_path / "zeros"
    with zeros.open("wb") as handle:
        handle.truncate(SIZE)
    file = file_of(zeros, lfs=True, sha256=ZEROS_SHA256)
    files = {f"model-{index:05}-of-{COUNT:05}.safetensors": file for index in range(COUNT)}
    place.hub.repositories[REPO] = Repository({**files, "config.json": file_of(b"{}")})
    return place


def test_copying_200_files_of_8_gib_takes_less_than_a_gib_of_memory(large: Place) -> None:
    line = command("stage", "--source", large.source, "--store", large.url)
    peaks: list[int] = []
    stop_after = 60

    def watch(number: int, method: str, path: str) -> None:
        if "partNumber=" in path and process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peaks.append(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
            if len(peaks) == stop_after:
                process.send_signal(signal.SIGKILL)

    large.store.after = watch
    process = subprocess.Popen(
        line, env=large.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said = process.communicate(timeout=300)[1]
    assert process.returncode == -signal.SIGKILL, said
    assert len(peaks) >= stop_after
    assert max(peaks) <= LIMIT_BYTES


def test_a_run_that_finds_1_7_tb_finished_ends_in_seconds(large: Place, tmp_path: Path) -> None:
    base = tmp_path / "store"
    copy = base / REPO / large.revision
    receipts = copy / ".staging" / "receipts"
    receipts.mkdir(parents=True)
    store = LocalStore(base)
    for name, file in large.repository.files.items():
        if not file.lfs:
            continue
        with (copy / name).open("wb") as handle:
            handle.truncate(file.size)
        found: Any = obstore.head(store, f"{REPO}/{large.revision}/{name}")
        receipt = {"path": name, "size": SIZE, "sha256": file.sha256, "git_blob": None, "e_tag": found["e_tag"]}
        (receipts / name).write_text(json.dumps(receipt))
    where = ("--source", large.source, "--store", f"file://{base}")
    assert large.run("stage", *where) == 0, large.last
    assert large.hub.sent == 2
    manifest = json.loads((copy / ".staging/manifest.json").read_bytes())
    assert manifest["bytes"] == COUNT * SIZE + 2
    assert large.run("stage", *where) == 0, large.last
    assert "was complete" in large.last
    assert large.run("verify", *where) == 0, large.last


def test_a_node_without_room_is_told_how_much_is_missing(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"can't make a small disk here: {mounted.stderr.strip()}")
    try:
        assert place.stage() == 0, place.last
        place.node = disk
        assert place.hydrate() == 6
        assert "free" in place.last
        assert "GB" in place.last
        # Without the look ahead the disk itself says so.
        monkeypatch.setattr("components.weights.staging.hydrate._check_room", lambda *_: None)
        assert place.hydrate("--give-up-seconds", "1") == 6
        assert "No space left" in place.last
        assert not (disk / REPO / place.revision / ".staging/manifest.json").exists()
        where = ("--source", place.source, "--store", f"file://{disk}/store", "--give-up-seconds", "1")
        assert place.run("stage", *where) == 6
        assert "it is full" in place.last
    finally:
        subprocess.run(["umount", str(disk)], check=False)
