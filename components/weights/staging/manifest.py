"""The manifest: what a complete copy consists of. It is written last, so that its presence means completeness.

Standard library only, as is everything that verifying a copy on a node needs.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from . import VERSION
from .errors import ContentError, UnverifiedError, UsageError

FORMAT = 1
OWN = ".staging"
"""Folder beside the files of a copy that holds the manifest and, until that is written, the receipts."""
MANIFEST = f"{OWN}/manifest.json"
RECEIPTS = f"{OWN}/receipts"
COMMIT = re.compile(r"[0-9a-f]{40}")
REPO = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A repository at a commit, and which of its files are wanted (shell patterns, as in huggingface_hub)."""

    repo: str
    revision: str
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """Where its copy lies, below the store's base or a node's directory."""
        return f"{self.repo}/{self.revision}"

    @property
    def patterns(self) -> str:
        """Its patterns, for a message."""
        named = {"allow": self.allow, "ignore": self.ignore}
        return " and ".join(f"{name} {', '.join(given)}" for name, given in named.items() if given) or "no patterns"

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file. size: in bytes. sha256: of its content. git_blob: the id that git has for it, where it is no LFS file.

    e_tag: of the object, when its bytes were verified; another one later means that somebody wrote over it.
    """

    path: str
    size: int
    sha256: str
    git_blob: str | None = None
    e_tag: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A complete, verified copy of a source."""

    source: Source
    files: tuple[Entry, ...]
    tool: str = f"staging {VERSION}"
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)

    def to_json(self) -> bytes:
        """The same copy gives the same bytes, whoever staged it."""
        body = {
            "format": self.format,
            "repo": self.source.repo,
            "revision": self.source.revision,
            "allow": list(self.source.allow),
            "ignore": list(self.source.ignore),
            "tool": self.tool,
            "bytes": self.size,
            "files": [asdict(entry) for entry in sorted(self.files, key=lambda entry: entry.path)],
        }
        return (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode()


class OtherFormatError(UnverifiedError):
    """The manifest is one of another version of this program, which may know better: it is never written over."""


def read_manifest(data: bytes, *, where: str) -> Manifest:
    """The manifest in `data`. Raises OtherFormatError, and UnverifiedError when it is none, or does not add up."""
    remedy = "Stage again: a copy without a sound manifest is not used"
    try:
        body: dict[str, Any] = json.loads(data)
        if body["format"] != FORMAT:
            raise OtherFormatError(
                f"{where} has manifest format {body['format']}, this program ({VERSION}) reads {FORMAT}",
                remedy="Use the version that made it, or remove the copy (`remove`) and stage it again",
            )
        manifest = Manifest(
            source=Source(
                repo=str(body["repo"]),
                revision=str(body["revision"]),
                allow=_patterns(body["allow"]),
                ignore=_patterns(body["ignore"]),
            ),
            files=tuple(read_entry(entry) for entry in body["files"]),
            tool=str(body["tool"]),
        )
        total = int(body["bytes"])
    except (ValueError, KeyError, TypeError, AttributeError, ContentError) as error:
        raise UnverifiedError(f"{where} is not a manifest ({type(error).__name__}: {error})", remedy=remedy) from None
    if manifest.size != total or not manifest.files:
        raise UnverifiedError(
            f"{where} says {total} bytes, its {len(manifest.files)} files have {manifest.size}", remedy=remedy
        )
    return manifest


def read_entry(body: dict[str, Any]) -> Entry:
    """One file of a manifest, or a receipt. Raises ValueError, KeyError or TypeError when it is neither."""
    entry = Entry(
        path=str(body["path"]),
        size=int(body["size"]),
        sha256=str(body["sha256"]),
        git_blob=body["git_blob"],
        e_tag=body["e_tag"],
    )
    if not re.fullmatch(r"[0-9a-f]{64}", entry.sha256) or entry.size < 0:
        raise ValueError(f"entry {entry.path!r} has no sound size and hash")
    check_path(entry.path)
    return entry


def check_path(path: str) -> None:
    """Refuses a file name that could leave its folder or meet the program's own. Raises ContentError."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or "\0" in path or parts[0] == OWN:
        raise ContentError(
            f"file name {path!r} can't be stored: it is empty, leaves its folder, or is {OWN}/",
            remedy="Leave the file out with --ignore",
        )


def parse_source(text: str | dict[str, Any], *, allow: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> Source:
    """`owner/name@revision`, or a JSON object with repo, revision, allow, ignore. Raises UsageError.

    The revision may still be a branch name: only the hub can say which commit it is.
    """
    body: Any = text
    try:
        if isinstance(text, str) and not text.lstrip().startswith("{"):
            repo, at, revision = text.partition("@")
            body = {"repo": repo, "revision": revision} if at else None
        elif isinstance(text, str):
            body = json.loads(text)
        source = Source(
            repo=_text(body["repo"]),
            revision=_text(body["revision"]),
            allow=_patterns(body.get("allow")) or allow,
            ignore=_patterns(body.get("ignore")) or ignore,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"source {text!r} is not OWNER/NAME@COMMIT",
            remedy='Write owner/name@<40 hex digits>, or {"repo": …, "revision": …, "allow": […], "ignore": […]}',
        ) from None
    if not REPO.fullmatch(source.repo) or not source.revision or "/" in source.revision:
        raise UsageError(
            f"source {text!r} is not OWNER/NAME@COMMIT",
            remedy="Write owner/name@<40 hex digits>, as the hub shows them",
        )
    return source


def _text(given: Any) -> str:
    """A string. Raises TypeError for anything else."""
    if not isinstance(given, str):
        raise TypeError(given)
    return given


def _patterns(given: Any) -> tuple[str, ...]:
    """A list of patterns. Raises TypeError for anything else: a string would be taken apart into its characters."""
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(pattern, str) for pattern in given):
        raise TypeError(given)
    return tuple(given)


def pinned(source: Source) -> Source:
    """The source, if its revision is a whole commit id. Raises UsageError."""
    if not COMMIT.fullmatch(source.revision):
        raise UsageError(
            f"revision {source.revision!r} of {source.repo} is not a commit", remedy="Name a commit: 40 hex digits"
        )
    return source
