"""Manifests, sources, and the two programs that read a copy on a node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from components.weights.gate import gate_container
from components.weights.staging.errors import ContentError, UnverifiedError, UsageError
from components.weights.staging.limits import Stop
from components.weights.staging.manifest import (
    MANIFEST,
    Entry,
    Manifest,
    OtherFormatError,
    Source,
    check_path,
    parse_source,
    pinned,
    read_manifest,
)
from components.weights.staging.progress import Progress
from components.weights.staging.verify import verify_directory

REVISION = "3f" * 20
SOURCE = Source(repo="owner/model", revision=REVISION)
FILES = {"config.json": b"{}", "a/weights.safetensors": b"w" * 1000, "empty": b""}


def manifest() -> Manifest:
    import hashlib

    entries = [
        Entry(path=path, size=len(body), sha256=hashlib.sha256(body).hexdigest()) for path, body in FILES.items()
    ]
    return Manifest(source=SOURCE, files=tuple(entries))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    place = tmp_path / SOURCE.prefix
    for path, body in FILES.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(body)
    (place / MANIFEST).parent.mkdir()
    (place / MANIFEST).write_bytes(manifest().to_json())
    return tmp_path


def verify(directory: Path, source: Source = SOURCE, *, full: bool = False) -> None:
    verify_directory(directory, source, full=full, stop=Stop(), progress=Progress("verifying"))


def gate(directory: Path, source: Source = SOURCE) -> subprocess.CompletedProcess[str]:
    """Runs the init container's own command, in an interpreter without any package."""
    made = gate_container(image="any", sources=[source], volume="weights", folder="", seconds=0)
    variables = {entry["name"]: entry["value"] for entry in made["env"]} | {"DIRECTORY": str(directory)}
    command = [sys.executable, "-I", "-S", *made["command"][1:]]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=30, check=False)


def test_a_manifest_survives_its_file() -> None:
    again = read_manifest(manifest().to_json(), where="here")
    assert again.source == SOURCE
    assert {entry.path: entry.sha256 for entry in again.files} == {e.path: e.sha256 for e in manifest().files}


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("files"),
        lambda body: body.update(format=2),
        lambda body: body.update(bytes=body["bytes"] + 1),
        lambda body: body.update(files=[], bytes=0),
        lambda body: body["files"][0].update(sha256="nothing"),
        lambda body: body["files"][0].update(size="large"),
        lambda body: body["files"][0].update(path="../escape"),
        lambda body: body.update(allow="*.json"),
    ],
)
def test_a_manifest_that_does_not_add_up_is_refused(change: Callable[[dict[str, object]], object]) -> None:
    body = json.loads(manifest().to_json())
    change(body)
    with pytest.raises(UnverifiedError):
        read_manifest(json.dumps(body).encode(), where="here")


def test_a_manifest_of_another_version_is_told_from_a_damaged_one() -> None:
    body = json.loads(manifest().to_json()) | {"format": 2, "files": "of another kind"}
    with pytest.raises(OtherFormatError, match=r"format 2.*Use the version that made it"):
        read_manifest(json.dumps(body).encode(), where="here")


def test_half_a_manifest_is_refused() -> None:
    whole = manifest().to_json()
    for length in range(0, len(whole) - 1, 37):
        with pytest.raises(UnverifiedError):
            read_manifest(whole[:length], where="here")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", ".staging/manifest.json", "a/./b"])
def test_a_path_that_leaves_its_place_is_refused(path: str) -> None:
    with pytest.raises(ContentError):
        check_path(path)


def test_a_source_is_written_in_two_ways() -> None:
    text = f"owner/model@{REVISION}"
    assert parse_source(text) == parse_source({"repo": "owner/model", "revision": REVISION}) == SOURCE
    assert parse_source(json.dumps({"repo": "owner/model", "revision": REVISION, "ignore": ["*.md"]})).ignore == (
        "*.md",
    )


@pytest.mark.parametrize(
    "text",
    [
        "owner/model",
        "model@main",
        "owner/model@",
        "{",
        '{"repo": "a/b"}',
        "a/b/c@main",
        '{"repo": "a/b", "revision": "main", "allow": "*.json"}',
        '{"repo": "a/b", "revision": "main", "ignore": [7]}',
    ],
)
def test_a_source_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not OWNER/NAME@COMMIT"):
        parse_source(text)


def test_a_branch_is_no_commit() -> None:
    with pytest.raises(UsageError):
        pinned(parse_source("owner/model@main"))


def damage_none(place: Path) -> None:
    pass


def damage_missing(place: Path) -> None:
    (place / "config.json").unlink()


def damage_short(place: Path) -> None:
    (place / "a/weights.safetensors").write_bytes(b"w" * 999)


def damage_no_manifest(place: Path) -> None:
    (place / MANIFEST).unlink()


def damage_half_manifest(place: Path) -> None:
    (place / MANIFEST).write_bytes((place / MANIFEST).read_bytes()[:100])


def damage_other_revision(place: Path) -> None:
    body = json.loads((place / MANIFEST).read_bytes())
    (place / MANIFEST).write_text(json.dumps({**body, "revision": "0" * 40}))


def damage_directory(place: Path) -> None:
    (place / "config.json").unlink()
    (place / "config.json").mkdir()


def damage_gone(place: Path) -> None:
    shutil.rmtree(place)


DAMAGES = [
    damage_none,
    damage_missing,
    damage_short,
    damage_no_manifest,
    damage_half_manifest,
    damage_other_revision,
    damage_directory,
    damage_gone,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_gate_before_an_engine_and_the_verification_agree(copy: Path, damage: Callable[[Path], None]) -> None:
    damage(copy / SOURCE.prefix)
    try:
        verify(copy)
        verified = True
    except UnverifiedError:
        verified = False
    assert verified == (damage is damage_none)
    done = gate(copy)
    assert done.returncode == (0 if verified else 1), done.stdout + done.stderr
    assert done.stderr == ""


def test_a_full_verification_finds_a_flipped_bit_of_right_size(copy: Path) -> None:
    (copy / SOURCE.prefix / "a/weights.safetensors").write_bytes(b"w" * 999 + b"v")
    verify(copy)
    with pytest.raises(UnverifiedError, match=r"weights\.safetensors"):
        verify(copy, full=True)


def test_a_copy_staged_with_other_patterns_is_refused_before_an_engine_and_by_the_verification(copy: Path) -> None:
    wanted = Source(repo=SOURCE.repo, revision=SOURCE.revision, ignore=("*.md",))
    with pytest.raises(UnverifiedError, match=r"staged with no patterns, not with ignore \*\.md"):
        verify(copy, wanted)
    done = gate(copy, wanted)
    assert done.returncode == 1
    assert "*.md" in done.stdout


def test_a_copy_on_a_node_is_verified_with_the_standard_library_alone(copy: Path) -> None:
    program = Path(__file__).parents[3] / "components" / "weights"
    code = (
        f"import sys; sys.path.insert(0, {str(program)!r}); from staging.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-I", "-S", "-c", code, "verify", "--full", "--directory", str(copy)]
    done = subprocess.run(
        [*command, "--source", str(SOURCE)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("source", ['{"repo": 7, "revision": "main"}', '{"repo": "a/b", "revision": 7}'])
def test_a_source_of_another_type_is_a_usage_error(source: str) -> None:
    with pytest.raises(UsageError, match="is not OWNER/NAME@COMMIT"):
        parse_source(source)


def test_a_file_that_the_disk_does_not_give_is_a_damaged_copy(copy: Path) -> None:
    unreadable = copy / SOURCE.prefix / "empty"
    unreadable.unlink()
    unreadable.symlink_to("/proc/self/mem")  # of size 0, and reading it is an I/O error
    verify(copy)
    with pytest.raises(UnverifiedError, match="empty can't be read \\(Input/output error\\)"):
        verify(copy, full=True)
