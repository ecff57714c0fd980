"""Files that a process killed at any moment leaves either as they were or as they should be."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: str) -> None:
    """Replaces the file by one rename."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(content)
    fresh.replace(path)
