"""The local hub's ids are those that git gives to the same files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sandbox.hub.hub import LFS_FROM_BYTES, MODEL, file_of, git_commit, made_up_repositories

WHEN = {
    "GIT_AUTHOR_NAME": "hub",
    "GIT_AUTHOR_EMAIL": "hub@example.com",
    "GIT_AUTHOR_DATE": "1764547200 +0000",
    "GIT_COMMITTER_NAME": "hub",
    "GIT_COMMITTER_EMAIL": "hub@example.com",
    "GIT_COMMITTER_DATE": "1764547200 +0000",
}


def git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, env={**os.environ, **WHEN}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_commits_id_is_gits(tmp_path: Path) -> None:
    files = {"b.txt": b"b", "a/c d/ü.json": b"{}", "a.b": b"dot", "a/x": b"1", "a0": b"zero"}
    git("init", "--quiet", cwd=tmp_path)
    for path, body in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(body)
    git("-c", "core.autocrlf=false", "add", ".", cwd=tmp_path)
    git("commit", "--quiet", "--no-gpg-sign", "-m", "files", cwd=tmp_path)
    assert git_commit({path: file_of(body) for path, body in files.items()}) == git("rev-parse", "HEAD", cwd=tmp_path)


def test_an_lfs_files_id_is_that_of_its_pointer(tmp_path: Path) -> None:
    file = file_of(b"x" * LFS_FROM_BYTES)
    # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: keys in this order, one a line.
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{file.sha256}\nsize {LFS_FROM_BYTES}\n"
    (tmp_path / "pointer").write_text(pointer)
    assert file.git_blob == git("hash-object", str(tmp_path / "pointer"), cwd=tmp_path)


def test_the_made_up_model_is_the_same_every_time() -> None:
    first, second = made_up_repositories()[MODEL], made_up_repositories()[MODEL]
    assert first.revision == second.revision
    assert sum(file.size for file in first.files.values()) < 10 * 1024**2
