"""A local hub and a real S3 server for each test; the program runs in this process, or in its own where it is killed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.weights.staging.cli import main
from sandbox.hub.hub import Hub, Repository, Server
from tests.support.staging import REPO, environment, model, s3, versitygw
from tests.support.store_proxy import StoreProxy


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address and directory of an S3 server."""
    directory = tmp_path_factory.mktemp("s3")
    with versitygw(directory) as address:
        yield address, directory


@dataclass
class Place:
    """One test's hub, store and destination."""

    hub: Hub
    hub_address: str
    blob_address: str
    second_address: str
    store: StoreProxy
    directory: Path
    base: str
    node: Path
    environment: dict[str, str]
    last: str = ""
    capture: Callable[[], str] = field(default=lambda: "")

    @property
    def repository(self) -> Repository:
        return self.hub.repositories[REPO]

    @property
    def revision(self) -> str:
        return self.repository.revision

    @property
    def source(self) -> str:
        return f"{REPO}@{self.revision}"

    @property
    def url(self) -> str:
        return f"s3://bucket/{self.base}"

    def run(self, *arguments: str) -> int:
        """Runs the program in this process; its lines are in `last`."""
        code = main(arguments)
        self.last = self.capture()
        return code

    def stage(self, *arguments: str, source: str | None = None, give_up: str = "20") -> int:
        where = ("--source", source or self.source, "--store", self.url, "--give-up-seconds", give_up)
        return self.run("stage", *where, *arguments)

    def verify(self, *arguments: str) -> int:
        return self.run("verify", "--source", self.source, "--store", self.url, *arguments)

    def hydrate(self, *arguments: str) -> int:
        where = ("--source", self.source, "--store", self.url, "--directory", str(self.node))
        return self.run("hydrate", *where, *arguments)

    def objects(self) -> dict[str, bytes]:
        """Every object of this revision in the store, read by AWS's own client."""
        client: Any = s3(self.store.upstream)
        prefix = f"{self.base}/{REPO}/{self.revision}/".lstrip("/")
        found = {}
        for page in client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix):
            for entry in page.get("Contents", []):
                body = client.get_object(Bucket="bucket", Key=entry["Key"])["Body"].read()
                found[entry["Key"].removeprefix(prefix)] = body
        return found

    def open_uploads(self) -> list[str]:
        client: Any = s3(self.store.upstream)
        found = client.list_multipart_uploads(Bucket="bucket", Prefix=self.base).get("Uploads", [])
        return [upload["Key"] for upload in found]

    def manifest(self) -> dict[str, Any] | None:
        data = self.objects().get(".staging/manifest.json")
        return None if data is None else json.loads(data)

    def wrong_objects(self) -> list[str]:
        """Objects under a file's name whose bytes are not that file's."""
        files = self.repository.files
        return [
            path
            for path, body in self.objects().items()
            if not path.startswith(".staging/")
            and (path not in files or hashlib.sha256(body).hexdigest() != files[path].sha256)
        ]

    def is_whole(self) -> bool:
        """Whether the store has exactly the repository's files, right, and a manifest with the hub's hashes."""
        found = self.manifest()
        files = self.repository.files
        listed = {entry["path"]: entry["sha256"] for entry in found["files"]} if found else {}
        objects = {path for path in self.objects() if not path.startswith(".staging/")}
        return (
            not self.wrong_objects()
            and objects == set(files)
            and listed == {path: file.sha256 for path, file in files.items()}
        )


@pytest.fixture
def place(
    s3_server: tuple[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Place]:
    address, directory = s3_server
    hub = Hub({REPO: model()})
    with Server(hub) as first, Server(hub) as second, StoreProxy(address) as store:
        hub.blob_port = first.blob_port
        variables = environment(hub=first.address, store=store.address)
        for key in os.environ:
            if key not in variables:
                monkeypatch.delenv(key)
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        yield Place(
            hub=hub,
            hub_address=first.address,
            blob_address=f"http://127.0.0.1:{first.blob_port}",
            second_address=f"http://127.0.0.1:{second.blob_port}",
            store=store,
            directory=directory,
            base=tmp_path.name,
            node=tmp_path / "node",
            environment=variables,
            capture=lambda: capsys.readouterr().err,
        )
