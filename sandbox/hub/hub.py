"""A hub on one's own machine: the part of the Hugging Face protocol that clients list and download models with.

One file, Python's standard library only, so that it runs in any Python image: `python hub.py --port 8080`. It answers
the unmodified `huggingface_hub` client: model info, paged trees, `resolve` with redirects to signed addresses, ranges,
LFS hashes, pinned commits and branches, gated and private repositories. Its model is made up, the same on every
machine, and small. For tests it can be told to fail in the ways that networks and hubs do.

The protocol is the one that huggingface_hub 2.4.0 speaks (hf_api.py, file_download.py, utils/_http.py there).
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import random
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

MODEL = "example/tiny-moe"
DRAFTER = "example/tiny-drafter"
LFS_FROM_BYTES = 1024 * 1024
"""Files of this size and more are LFS files here; the hub's own limit is 10 MiB, the model here is smaller than that."""
BLOCK = 1024 * 1024
SPOIL_BODY = ("cut", "short", "flip", "stall", "whole")
"""Faults that a HEAD request does not meet."""


@dataclass(frozen=True)
class File:
    """One file of a repository. content: its bytes, or a file on disk (which may be sparse)."""

    content: bytes | Path
    sha256: str
    git_blob: str
    lfs: bool

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes [start, stop) in blocks."""
        if isinstance(self.content, bytes):
            yield self.content[start:stop]
            return
        with self.content.open("rb") as handle:
            handle.seek(start)
            while start < stop and (block := handle.read(min(BLOCK, stop - start))):
                start += len(block)
                yield block


def file_of(content: bytes | Path, *, lfs: bool | None = None, sha256: str | None = None) -> File:
    """A file with its real hashes. lfs: unset, by size. sha256: known already, or a lie for a test."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    is_lfs = size >= LFS_FROM_BYTES if lfs is None else lfs
    digest = sha256 or _sha256(content)
    if is_lfs:
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n".encode()
        return File(content, digest, git_object("blob", pointer), True)
    return File(
        content, digest, git_object("blob", content if isinstance(content, bytes) else content.read_bytes()), False
    )


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def git_object(kind: str, body: bytes) -> str:
    """The id that git gives to an object."""
    return hashlib.sha1(f"{kind} {len(body)}\0".encode() + body, usedforsecurity=False).hexdigest()


def git_commit(files: Mapping[str, File]) -> str:
    """The id of a commit that holds these files, with a fixed author and date: the same files give the same id."""
    author = "hub <hub@example.com> 1764547200 +0000"
    body = f"tree {_git_tree(files)}\nauthor {author}\ncommitter {author}\n\nfiles\n"
    return git_object("commit", body.encode())


def _git_tree(files: Mapping[str, File]) -> str:
    entries: dict[str, tuple[str, str]] = {}
    folders: dict[str, dict[str, File]] = {}
    for path, file in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = file
        else:
            entries[name] = ("100644", file.git_blob)
    for name, below in folders.items():
        entries[name + "/"] = ("40000", _git_tree(below))
    body = b"".join(
        f"{mode} {name.removesuffix('/')}\0".encode() + bytes.fromhex(digest)
        for name, (mode, digest) in sorted(entries.items(), key=lambda item: item[0].encode())
    )
    return git_object("tree", body)


@dataclass
class Repository:
    """A model repository with one commit. access: who may read. token: what opens a gated or private one."""

    files: dict[str, File]
    access: Literal["public", "gated", "private"] = "public"
    token: str = ""
    revision: str = ""

    def __post_init__(self) -> None:
        self.revision = self.revision or git_commit(self.files)

    def entry(self, path: str) -> dict[str, Any]:
        file = self.files[path]
        found: dict[str, Any] = {"type": "file", "oid": file.git_blob, "size": file.size, "path": path}
        if file.lfs:
            found["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 134}
        return found


@dataclass
class Fault:
    """One way to fail. It applies `times` times to requests whose kind is in `on` and whose file path matches.

    on: info, tree, resolve (of the hub), blob (of the host that it redirects to). kind:
    status: answer `status`, with Retry-After when `retry_after` is set (seconds). cut: close after `at` bytes.
    short: a body that lacks its second half, with headers that agree with it. flip: one bit wrong at byte `at`.
    stall: send `at` bytes, then nothing for `seconds`. whole: the whole file instead of the range. expired: a signed
    address that no longer holds (resolve). elsewhere: the blob is at the base address `target` (blob).
    """

    kind: Literal["status", "cut", "short", "flip", "stall", "whole", "expired", "elsewhere"]
    on: tuple[str, ...] = ("blob",)
    path: str = ".*"
    times: int = 1
    status: int = 503
    retry_after: float | None = None
    at: int = 0
    seconds: float = 0.0
    target: str = ""


@dataclass
class Hub:
    """Repositories, faults, and what was asked for. signed_seconds: how long a redirect's address holds."""

    repositories: dict[str, Repository]
    faults: list[Fault] = field(default_factory=list)
    blob_port: int = 0
    signed_seconds: float = 3600.0
    page: int = 100
    requests: list[tuple[str, str, int, float]] = field(default_factory=list)
    """(kind, path, status, time on the monotonic clock) of each request that was answered."""
    leaked: list[str] = field(default_factory=list)
    """Paths of requests that brought the hub's token to the host of the blobs."""
    sent: int = 0
    """Bytes of files that were sent."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key: bytes = field(default_factory=lambda: os.urandom(16))

    def fault(self, kind: str, path: str, *, body: bool, span: range) -> Fault | None:
        """Takes the next fault that applies. body: whether the answer has one that could be spoilt; span: its bytes."""
        with self._lock:
            for fault in self.faults:
                applies = fault.times > 0 and kind in fault.on and re.search(fault.path, path)
                spoils = (body or fault.kind not in SPOIL_BODY) and (fault.kind != "flip" or fault.at in span)
                if applies and spoils:
                    fault.times -= 1
                    return fault
        return None

    def note(self, kind: str, path: str, status: int) -> None:
        with self._lock:
            self.requests.append((kind, path, status, time.monotonic()))
            del self.requests[:-100_000]

    def count(self, sent: int) -> None:
        with self._lock:
            self.sent += sent

    def sign(self, path: str, expires: int) -> str:
        return hmac.new(self._key, f"{path}\n{expires}".encode(), "sha256").hexdigest()


class Refusal(Exception):
    """An answer that is an error, as the hub words it."""

    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    hub: Hub
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        kind = "info"
        try:
            if path == "/healthz":
                return self._send(b'{"status":"ok"}')
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path):
                return self._info(found[1], found[2] or "main")
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)(?:/.*)?", path):
                kind = "tree"
                return self._tree(found[1], found[2], parse_qs(url.query))
            if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                kind = "resolve"
                return self._resolve(found[1], found[2], found[3])
            if found := re.fullmatch(r"/blobs/([^/]+/[^/]+)/([0-9a-f]{64})/(.+)", path):
                kind = "blob"
                return self._blob(found[1], found[3], url.path, parse_qs(url.query))
            raise Refusal(404, message="no such address")
        except Refusal as refusal:
            self.hub.note(kind, path, refusal.status)
            self._refuse(refusal)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        return None

    do_HEAD = do_GET

    def _info(self, repo: str, revision: str) -> None:
        self._early_fault("info", repo)
        repository = self._repository(repo, revision, content=False)
        entries = [repository.entry(path) for path in repository.files]
        self.hub.note("info", repo, 200)
        self._json(
            {
                "_id": "0" * 24,
                "id": repo,
                "modelId": repo,
                "sha": repository.revision,
                "private": repository.access == "private",
                "gated": "manual" if repository.access == "gated" else False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [
                    {"rfilename": entry["path"], "size": entry["size"], "blobId": entry["oid"]} for entry in entries
                ],
            }
        )

    def _tree(self, repo: str, revision: str, query: dict[str, list[str]]) -> None:
        self._early_fault("tree", repo)
        repository = self._repository(repo, revision, content=False)
        start = int(query.get("cursor", ["0"])[0])
        paths = sorted(repository.files)
        more = {}
        if start + self.hub.page < len(paths):
            address = f"{self._base()}/api/models/{repo}/tree/{revision}?recursive=true&cursor={start + self.hub.page}"
            more["Link"] = f'<{address}>; rel="next"'
        entries = [repository.entry(path) for path in paths[start : start + self.hub.page]]
        self.hub.note("tree", repo, 200)
        self._json(entries, more)

    def _resolve(self, repo: str, revision: str, path: str) -> None:
        fault = self._early_fault("resolve", path)
        repository = self._repository(repo, revision, content=True)
        file = repository.files.get(path)
        if file is None:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": repository.revision, "ETag": f'"{file.git_blob}"'}
        if not file.lfs:
            return self._content("resolve", path, file, headers, fault)
        expires = int(time.time() + self.hub.signed_seconds)
        address = f"/blobs/{repo}/{file.sha256}/{quote(path)}"
        if fault and fault.kind == "expired":
            expires = int(time.time()) - 1
        headers["X-Linked-Size"] = str(file.size)
        headers["X-Linked-ETag"] = f'"{file.sha256}"'
        headers["Location"] = (
            f"{self._blob_base()}{address}?Expires={expires}&Signature={self.hub.sign(address, expires)}"
        )
        self.hub.note("resolve", path, 302)
        return self._send(b"", status=302, headers=headers)

    def _blob(self, repo: str, path: str, signed: str, query: dict[str, list[str]]) -> None:
        if self.headers.get("Authorization"):
            self.hub.leaked.append(path)
        fault = self._early_fault("blob", path)
        if fault and fault.kind == "elsewhere":
            self.hub.note("blob", path, 302)
            return self._send(b"", status=302, headers={"Location": fault.target + self.path})
        expires = int(query.get("Expires", ["0"])[0])
        if not hmac.compare_digest(query.get("Signature", [""])[0], self.hub.sign(signed, expires)):
            raise Refusal(403, message="SignatureDoesNotMatch")
        if expires < time.time():
            raise Refusal(403, message="Request has expired")
        file = self.hub.repositories[repo].files[path]
        return self._content("blob", path, file, {"ETag": f'"{file.sha256}"'}, fault)

    def _early_fault(self, kind: str, path: str) -> Fault | None:
        fault = self.hub.fault(kind, path, body=self.command == "GET", span=self._span())
        if fault and fault.kind == "status":
            after = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            self.hub.note(kind, path, fault.status)
            self._send(b"not now", status=fault.status, headers=after)
            raise BrokenPipeError
        return fault

    def _repository(self, repo: str, revision: str, *, content: bool) -> Repository:
        repository = self.hub.repositories.get(repo)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if repository is None or (repository.access == "private" and token != repository.token):
            raise Refusal(401 if not token else 404, "RepoNotFound", "Repository not found")
        if content and repository.access == "gated" and token != repository.token:
            raise Refusal(
                403 if token else 401, "GatedRepo", f"Access to model {repo} is restricted. Ask for access on the hub."
            )
        if revision not in ("main", repository.revision):
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repository

    def _content(self, kind: str, path: str, file: File, headers: Mapping[str, str], fault: Fault | None) -> None:
        start, stop, status = 0, file.size, 200
        if self.headers.get("Range") and not (fault and fault.kind == "whole"):
            start, stop = self._span().start, min(file.size, self._span().stop)
            if start >= file.size:
                raise Refusal(416, message=f"the file has {file.size} bytes")
            status = 206
        if fault and fault.kind == "short":
            stop = start + (stop - start) // 2
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(stop - start))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{file.size}")
        self.end_headers()
        self.hub.note(kind, path, status)
        if self.command == "HEAD":
            return
        self.wfile.flush()
        if fault is None and isinstance(file.content, Path):
            with file.content.open("rb") as handle:
                self.hub.count(self.connection.sendfile(handle, start, stop - start))
            return
        self._body(file, start, stop, fault)

    def _body(self, file: File, start: int, stop: int, fault: Fault | None) -> None:
        position = start
        for block in file.blocks(start, stop):
            data = block
            if fault and fault.kind in ("cut", "stall") and position + len(block) > start + fault.at:
                data = block[: max(0, start + fault.at - position)]
            if fault and fault.kind == "flip" and position <= fault.at < position + len(block):
                wrong = bytearray(block)
                wrong[fault.at - position] ^= 1
                data = bytes(wrong)
            self.wfile.write(data)
            self.wfile.flush()
            self.hub.count(len(data))
            if len(data) < len(block):
                assert fault is not None
                if fault.kind == "stall":
                    time.sleep(fault.seconds)
                else:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                raise BrokenPipeError
            position += len(block)

    def _base(self) -> str:
        return f"http://{self.headers.get('Host')}"

    def _span(self) -> range:
        """The bytes that the request asks for."""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        return range(int(wanted[1]), int(wanted[2]) + 1 if wanted[2] else sys.maxsize) if wanted else range(sys.maxsize)

    def _blob_base(self) -> str:
        # By the name that the client has for this host: inside a cluster it is a Service.
        return f"http://{(self.headers.get('Host') or '').partition(':')[0]}:{self.hub.blob_port}"

    def _json(self, value: object, headers: Mapping[str, str] | None = None) -> None:
        self._send(json.dumps(value).encode(), headers={"Content-Type": "application/json", **(headers or {})})

    def _refuse(self, refusal: Refusal) -> None:
        headers = {}
        if refusal.code:
            headers["X-Error-Code"] = refusal.code
        if refusal.message:
            headers["X-Error-Message"] = refusal.message
        self._send(json.dumps({"error": refusal.message}).encode(), status=refusal.status, headers=headers)

    def _send(self, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `Hub.requests` holds what was asked for."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class Server:
    """Serves a hub on two ports, the hub's and the blobs', as the real one has two hosts: `with Server(hub) as server`.

    blob_port: unset, the one after `port` (any free one when that is 0).
    """

    def __init__(self, hub: Hub, *, host: str = "127.0.0.1", port: int = 0, blob_port: int | None = None) -> None:
        handler = type("HubHandler", (Handler,), {"hub": hub})
        self.hub = hub
        self._listeners = [_Listener((host, port), handler)]
        self._listeners.append(_Listener((host, blob_port if blob_port is not None else port and port + 1), handler))
        self.blob_port: int = self._listeners[1].server_address[1]
        hub.blob_port = self.blob_port

    @property
    def address(self) -> str:
        return f"http://{self._listeners[0].server_address[0]!s}:{self._listeners[0].server_address[1]}"

    def __enter__(self) -> Server:
        for listener in self._listeners:
            threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.shutdown()
            listener.server_close()


def safetensors(seed: str, *, tensors: int, rows: int, columns: int) -> bytes:
    """A valid safetensors file with bfloat16 tensors of made-up, reproducible content."""
    each = rows * columns * 2
    header = {
        f"{seed}.{index}.weight": {
            "dtype": "BF16",
            "shape": [rows, columns],
            "data_offsets": [index * each, (index + 1) * each],
        }
        for index in range(tensors)
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + random.Random(seed).randbytes(tensors * each)


def model_files(name: str, *, shards: int, rows: int) -> dict[str, File]:
    """The files of a made-up model of `shards` weight files."""
    files: dict[str, bytes] = {
        "README.md": f"# {name}\n\nMade-up weights, for trying out an environment.\n".encode(),
        "config.json": json.dumps(
            {"architectures": ["MadeUpForCausalLM"], "model_type": "made_up", "hidden_size": 512}, indent=2
        ).encode(),
        "generation_config.json": b'{"temperature": 1.0}\n',
        "tokenizer/special tokens ü.json": b'{"bos": "<s>"}\n',
    }
    where: dict[str, str] = {}
    for shard in range(1, shards + 1):
        path = f"model-{shard:05}-of-{shards:05}.safetensors"
        files[path] = safetensors(f"{name}.layers.{shard}", tensors=2, rows=rows, columns=512)
        where |= {f"{name}.layers.{shard}.{index}.weight": path for index in range(2)}
    files["model.safetensors.index.json"] = json.dumps({"weight_map": where}, indent=2).encode()
    return {path: file_of(content) for path, content in files.items()}


def made_up_repositories() -> dict[str, Repository]:
    """The repositories that a hub has on its own: a model of 6 MiB in three shards, and a drafter of 2 MiB."""
    return {
        MODEL: Repository(model_files("tiny-moe", shards=3, rows=1024)),
        DRAFTER: Repository(model_files("tiny-drafter", shards=1, rows=1024)),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8080, help="port of the hub; blobs are on the next (default %(default)s)"
    )
    parser.add_argument(
        "--directory", type=Path, help="serve DIRECTORY/OWNER/NAME/… as repositories instead of the made-up ones"
    )
    parser.add_argument("--list", action="store_true", help="print `repository revision` for each and end")
    options = parser.parse_args()
    repositories = from_directory(options.directory) if options.directory else made_up_repositories()
    for name, repository in repositories.items():
        print(name, repository.revision, flush=True)
    if options.list:
        return
    with Server(Hub(repositories), host=options.host, port=options.port) as server:
        print(f"serving on {server.address}", file=sys.stderr, flush=True)
        threading.Event().wait()


def from_directory(directory: Path) -> dict[str, Repository]:
    """Repositories from folders OWNER/NAME below `directory`; files are served from where they lie."""
    return {
        str(folder.relative_to(directory)): Repository(
            {str(path.relative_to(folder)): file_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}
        )
        for folder in sorted(directory.glob("*/*"))
        if folder.is_dir()
    }


if __name__ == "__main__":
    main()
