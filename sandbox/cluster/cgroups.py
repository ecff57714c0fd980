"""The control groups that a cluster's pods live in: the only thing of it on the host besides the link."""

from __future__ import annotations

import os
import time
from pathlib import Path


def control_group_roots() -> list[Path]:
    """/sys/fs/cgroup itself where there is one hierarchy (version 2), else one directory for each controller (version 1).

    Beside those of version 1 there may be `unified`, which runc uses too.
    """
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted({path.resolve() for path in root.iterdir() if path.is_dir()})


def remove_control_groups(name: str) -> None:
    """Removes the groups of a cluster whose processes are gone."""
    for root in control_group_roots():
        _remove_group(root / name)


def _remove_group(group: Path) -> None:
    """Control groups are removed from the leaves up; they are empty once the processes are gone."""
    if not group.exists():
        return
    for folder, folders, _ in os.walk(group, topdown=False):
        for name in folders:
            _remove_empty(Path(folder, name))
    _remove_empty(group)


def _remove_empty(group: Path) -> None:
    for _ in range(50):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # the kernel still takes the last process out
        else:
            return
