"""The check that runs before an engine, as a process with a stand-in for the driver's tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.serving.checks import node

PROGRAM = Path(node.__file__)
B300 = "NVIDIA B300 SXM6 AC, 275040"
B200 = "NVIDIA B200, 183359"
MOUNTS = """\
1 0 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containerd/1
2 1 9:127 /models/weights /mnt/models rw,relatime shared:5 - xfs /dev/md127 rw,attr2
3 1 259:1 /var/lib/other /mnt/root rw,relatime - xfs /dev/nvme0n1p1 rw
"""
"""What a container on a node with a RAID0 of its instance store sees (proc_pid_mountinfo(5))."""


def check(tmp_path: Path, *, cards: list[str] | None, **changes: str) -> tuple[int, dict[str, Any]]:
    tool = tmp_path / "nvidia-smi"
    if cards is not None:
        tool.write_text("#!/bin/sh\n" + "".join(f"echo '{card}'\n" for card in cards))
        tool.chmod(0o755)
    (tmp_path / "mountinfo").write_text(MOUNTS)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GPUS": "8",
        "GPU_MIB": "256000",
        "DISK": "/mnt/models",
        "DEVICE": "/dev/md",
        "MOUNTINFO": str(tmp_path / "mountinfo"),
        "READ_MBPS": "0",
        "WEIGHTS": str(tmp_path),
        **changes,
    }
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, json.loads(done.stdout)


def test_eight_b300_and_an_array_are_what_was_planned(tmp_path: Path) -> None:
    code, told = check(tmp_path, cards=8 * [B300])
    assert (code, told["ok"], told["gpus"], told["gpu_mib"]) == (0, True, 8, 275040)


@pytest.mark.parametrize(
    ("cards", "problem"),
    [
        (7 * [B300], "7 GPUs where 8 were planned"),
        (8 * [B200], "a GPU has 183359 MiB"),
        (None, "nvidia-smi does not run"),
    ],
)
def test_other_gpus_than_planned_stop_the_pod(cards: list[str] | None, problem: str, tmp_path: Path) -> None:
    code, told = check(tmp_path, cards=cards)
    assert code == 1
    assert any(problem in entry for entry in told["problems"])


def test_weights_on_the_root_volume_stop_the_pod(tmp_path: Path) -> None:
    code, told = check(tmp_path, cards=8 * [B300], DISK="/mnt/root")
    assert code == 1
    assert "is on /dev/nvme0n1p1" in told["problems"][0]


def test_weights_that_are_not_mounted_stop_the_pod(tmp_path: Path) -> None:
    code, told = check(tmp_path, cards=8 * [B300], DISK="/mnt/elsewhere")
    assert code == 1
    assert "not a mount" in told["problems"][0]


def test_a_disk_that_is_slower_than_planned_stops_the_pod_with_both_figures(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(os.urandom(4 * 1024 * 1024))
    code, told = check(tmp_path, cards=8 * [B300], READ_MBPS="1e9")
    assert code == 1
    assert told["read_mbps"] > 0
    assert "where 1000000000 were planned" in told["problems"][0]


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    _, told = check(tmp_path, cards=7 * [B200], DISK="/mnt/root")
    assert len(told["problems"]) == 3
