"""How long a plan takes: each stack, a hundred replicas, the command in a fresh process, and the import."""

from __future__ import annotations

import copy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from planning.plan import plan
from planning.settings import load

ROOT = Path(__file__).parents[1]
NOW = datetime(2026, 12, 10, 8, 0, tzinfo=UTC)
WARM, ROUNDS, PROCESSES = 3, 30, 7
IMPORT_LIMIT_MS = 50
COMMAND_LIMIT_S = 1.0

FILLED: Mapping[str, Mapping[str, Any]] = {
    "eks-b300": {"weights": {"bucket": "bench"}, "capacity_block": {"reservation": "cr-0123456789abcdef0"}},
    "gke-a4x-max": {
        "project": "benchmark",
        "image": "docker.io/vllm/vllm-openai:kimi-k31@sha256:" + "0" * 64,
        "capacity": {"reservation": "r/reservationBlocks/b/reservationSubBlocks/s"},
        "weights": {"bucket": "bench"},
    },
    "gke-tpu7x": {
        "project": "benchmark",
        "image": "docker.io/lmsysorg/sglang:dev-kimi-k31-pro-tpu@sha256:" + "0" * 64,
        "capacity": {"reservation": "r"},
        "weights": {"bucket": "bench"},
    },
}
"""What the example configs leave to their users."""

IMPORTS = """
import time
start = time.process_time()
from pydantic import BaseModel
class One(BaseModel):
    x: int
One(x=1)
middle = time.process_time()
import planning.plan, planning.settings
print(middle - start, time.process_time() - middle)
"""


LIBRARIES = """
import yaml, rich.console, rich.table
from pydantic import BaseModel
class One(BaseModel):
    x: int
One(x=1)
"""


def measure() -> Iterator[dict[str, Any]]:
    """Figures in milliseconds, medians. `times_two`: against two replicas, in the same run."""
    for stack in FILLED:
        yield {"figure": "plan", "stack": stack, "ms": round(1e3 * _median(_planner(_values(stack))), 2)}
    two, hundred = (_median(_planner(_values("gke-tpu7x") | {"replicas": count})) for count in (2, 100))
    yield {
        "figure": "plan of 100 replicas",
        "stack": "gke-tpu7x",
        "ms": round(1e3 * hundred, 2),
        "times_two": round(hundred / two, 2),
    }
    yield {"figure": "command", "stack": "eks-b300", **_command()}
    yield {"figure": "import", **_imports()}


def _values(stack: str) -> dict[str, Any]:
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))["config"]
    found = {key.removeprefix("llm-serving:"): value for key, value in config.items()}
    for key, value in FILLED[stack].items():
        found[key] = {**found[key], **value} if isinstance(value, dict) else value
    return found


def _planner(values: dict[str, Any]) -> Callable[[], object]:
    return lambda: plan(load(copy.deepcopy(values)), now=NOW)  # type: ignore[arg-type]


def _median(run: Callable[[], object]) -> float:
    for _ in range(WARM):
        run()
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def _command() -> dict[str, Any]:
    """The whole command in fresh processes: interpreter, imports, YAML, plan, report.

    times_libraries: against a process that only imports the libraries which the command needs, in the same run.
    """
    with tempfile.TemporaryDirectory() as directory:
        config = {f"llm-serving:{key}": value for key, value in _values("eks-b300").items()}
        (Path(directory) / "Pulumi.eks-b300.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
        command = [sys.executable, "-m", "planning", "--stack", "eks-b300", "--directory", directory]
        ours, libraries = _process(command), _process([sys.executable, "-c", LIBRARIES])
    return {
        "ms": round(1e3 * ours),
        "times_libraries": round(ours / libraries, 2),
        "limit_ms": 1e3 * COMMAND_LIMIT_S,
        "met": ours <= COMMAND_LIMIT_S,
    }


def _process(command: list[str]) -> float:
    """Median wall seconds of fresh processes."""
    spent = []
    for _ in range(PROCESSES):
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def _imports() -> dict[str, Any]:
    """Processor time, so that other work on the machine does not count."""
    pairs = []
    for _ in range(PROCESSES):
        ended = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, check=True, capture_output=True, text=True)
        pairs.append([float(part) for part in ended.stdout.split()])
    own, ours = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    return {
        "pydantic_cpu_ms": round(own),
        "planning_on_top_cpu_ms": round(ours),
        "share_of_pydantic": round(ours / own, 2),
        "limit_ms": IMPORT_LIMIT_MS,
        "met": ours <= IMPORT_LIMIT_MS,
    }
