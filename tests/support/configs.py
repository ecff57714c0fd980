"""The example configs with their placeholders filled in, and changes to them by dotted path."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 12, 10, 8, 0, tzinfo=UTC)
DIGEST = "@sha256:" + "ab" * 32
MISSING = "(missing)"
"""As a value of a change: take the key away."""

FILLED: Mapping[str, Mapping[str, Any]] = {
    "eks-b300": {
        "weights.bucket": "kimi-weights-7f3a",
        "capacity_block.reservation": "cr-0123456789abcdef0",
        "capacity_block.facts": {
            "state": "active",
            "instance_type": "p6-b300.48xlarge",
            "availability_zone": "us-west-2c",
            "count": 1,
            "start": "2026-12-09T11:30:00Z",
            "end": "2026-12-16T11:30:00Z",
        },
    },
    "gke-a4x-max": {
        "project": "kimi-serving",
        "image": "docker.io/vllm/vllm-openai:kimi-k31" + DIGEST,
        "capacity.reservation": "gb300/reservationBlocks/block-1/reservationSubBlocks/sub-block-1",
        "weights.bucket": "kimi-weights-7f3a",
    },
    "gke-tpu7x": {
        "project": "kimi-serving",
        "image": "docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu" + DIGEST,
        "capacity.reservation": "tpu-reservation",
        "weights.bucket": "kimi-weights-7f3a",
    },
}


def example(stack: str) -> dict[str, Any]:
    """The values of an example config as they are in the file."""
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))["config"]
    return {key.removeprefix("llm-serving:"): value for key, value in config.items()}


def values(stack: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The example with its placeholders filled in, and then changed."""
    found = example(stack)
    for path, value in {**FILLED[stack], **(changes or {})}.items():
        put(found, path, value)
    return found


def put(target: dict[str, Any], path: str, value: object) -> None:
    """Sets a dotted path; a name in quotes may have dots."""
    *parents, last = path.split(".")
    for part in parents:
        inner = target.get(part)
        if not isinstance(inner, dict):
            inner = {}
            target[part] = inner
        target = inner
    if value == MISSING:
        target.pop(last, None)
    else:
        target[last] = copy.deepcopy(value)
