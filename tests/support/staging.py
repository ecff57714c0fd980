"""Runs the staging program, as a process or in this one, against a local hub and real object stores."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import botocore.session
from botocore.client import BaseClient

from sandbox.hub.hub import File, Repository, file_of
from sandbox.toolchain import tool

PROGRAM = Path(__file__).parents[2] / "components" / "weights"
REPO = "example/model"
MIB = 1024 * 1024
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True)
class Ran:
    """What a run of the program did."""

    code: int
    text: str
    seconds: float


@contextmanager
def versitygw(directory: Path) -> Iterator[str]:
    """A real S3 server on a free port, its buckets in `directory`; yields its address."""
    (directory / "bucket").mkdir(parents=True)
    port = free_port()
    command = [str(tool("versitygw")), "--port", f"127.0.0.1:{port}", "--access", KEYS["AWS_ACCESS_KEY_ID"]]
    command += ["--secret", KEYS["AWS_SECRET_ACCESS_KEY"], "--quiet", "posix", str(directory)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, *, seconds: float = 20) -> None:
    """Returns when something listens."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def model(*, large: int = 1, part: int = 8 * MIB, seed: int = 7) -> Repository:
    """A repository with `large` files of two and a half parts, a one-part LFS file, small files and an empty one."""
    chance = random.Random(seed)
    files: dict[str, File] = {
        "config.json": file_of(b'{"a": 1}\n'),
        "sub/tokenizer.json": file_of(chance.randbytes(40_000)),
        "empty.txt": file_of(b""),
        "small.safetensors": file_of(chance.randbytes(2 * MIB)),
    }
    for index in range(large):
        files[f"model-{index:05}.safetensors"] = file_of(chance.randbytes(2 * part + part // 2 + index))
    return Repository(files)


def environment(*, hub: str, store: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a run: nothing of the person's own clouds and hubs."""
    mine = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("AWS_", "HF_", "STAGING_", "GOOGLE_")) and not key.lower().endswith("_proxy")
    }
    return {
        **mine,
        **KEYS,
        "AWS_ENDPOINT_URL": store,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "HF_ENDPOINT": hub,
        "HF_HOME": "/nonexistent",
        "PYTHONPATH": str(PROGRAM),
        **(more or {}),
    }


def command(*arguments: str) -> list[str]:
    """The program's command line; `-P` keeps the working directory out of the way."""
    return [sys.executable, "-P", "-m", "staging", *arguments]


def run(*arguments: str, env: Mapping[str, str], timeout: float = 120) -> Ran:
    """Runs the program to its end."""
    started = time.monotonic()
    done = subprocess.run(
        command(*arguments), env=dict(env), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Ran(code=done.returncode, text=done.stdout + done.stderr, seconds=time.monotonic() - started)


def s3(address: str) -> BaseClient:
    """AWS's own client for the store."""
    return botocore.session.get_session().create_client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region_name=KEYS["AWS_REGION"],
    )
