"""The engine's arguments and the rules about them, judged by SGLang's own command-line parser."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from catalog.engine_flags import CHOICES, KNOWN_FLAGS
from catalog.recipes import SGLANG_TPU
from planning.flags import ALIASES
from planning.plan import plan
from planning.settings import load
from sandbox.engine_wheels import wheel
from tests.support.configs import NOW, ROOT, values

REGISTERED_ELSEWHERE = {"--reasoning-parser", "--tool-call-parser"}
"""SGLang adds these two in server_args.py, with the parsers that it has registered."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's sources."""
    found = wheel("sglang")
    if found is None:
        pytest.skip("sglang's wheel is not here; `python -m sandbox.engine_wheels sglang` fetches it (39 MB)")
    directory = tmp_path_factory.mktemp("sglang")
    with zipfile.ZipFile(found) as archive:
        archive.extractall(directory, [name for name in archive.namelist() if name.startswith("sglang/srt/")])
    return directory


def run(sources: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.sglang_parser", str(sources), *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def parsed(sources: Path, *flags: str) -> dict[str, Any]:
    ended = run(sources, *flags)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


@pytest.fixture(scope="module")
def options(sources: Path) -> dict[str, list[str] | None]:
    """Every option of the release, and its choices."""
    return dict(parsed(sources, "--model-path=x")["options"])


def test_the_release_accepts_every_argument_of_the_engine_and_reads_the_values_that_the_plan_means(sources: Path):
    planned = plan(load(values("eks-b300")), now=NOW)  # type: ignore[arg-type]
    found = parsed(sources, *planned.engine.arguments)
    assert {flag.partition("=")[0] for flag in found["unknown"]} == REGISTERED_ELSEWHERE
    read = found["values"]
    assert (read["tp_size"], read["dcp_size"], read["ep_size"]) == (8, 8, 2)
    assert read["context_length"] == planned.engine.context_tokens
    assert read["max_running_requests"] == planned.engine.running_requests
    assert read["port"] == planned.engine.port
    assert read["served_model_name"] == planned.engine.served_name


def test_the_catalogues_flags_are_the_releases_flags(sources: Path, options: dict[str, list[str] | None]):
    real = {name.lstrip("-") for name in options if name.startswith("--")} - {"help"}
    in_code = (sources / "sglang/srt/server_args.py").read_text(encoding="utf-8")
    assert real <= KNOWN_FLAGS["sglang"]
    assert [flag for flag in KNOWN_FLAGS["sglang"] - real if f'"--{flag}"' not in in_code] == []


def test_the_catalogues_choices_are_the_releases_choices(options: dict[str, list[str] | None]):
    for name, choices in CHOICES["sglang"].items():
        assert options[f"--{name}"] == list(choices), name


def test_every_other_spelling_that_the_plan_knows_is_one_for_the_release(
    sources: Path, options: dict[str, list[str] | None]
):
    for alias, name in ALIASES["sglang"].items():
        if f"--{alias}" not in options:
            # argparse completes a prefix when only one option begins with it
            assert [option for option in options if option.startswith(f"--{alias}")] == [f"--{name}"]
            continue
        base = () if name == "model-path" else ("--model-path=x",)
        by_alias, by_name = (parsed(sources, *base, f"--{flag}", *_value(alias))["values"] for flag in (alias, name))
        assert by_alias == by_name, alias


def _value(alias: str) -> tuple[str, ...]:
    if alias == "enable-hicache":
        return ()
    return ("x",) if alias in ("model", "nccl-init-addr") else ("2",)


@pytest.mark.parametrize(("flag", "value"), [("dcp-comm-backend", "nccl"), ("hicache-io-backend", "raiden")])
def test_a_choice_that_a_rule_refuses_is_refused_by_the_release(sources: Path, flag: str, value: str):
    ended = run(sources, "--model-path=x", f"--{flag}={value}")
    assert ended.returncode == 2
    assert f"argument --{flag}: invalid choice: '{value}'" in ended.stderr


def test_the_tpu_recipe_differs_from_the_release_only_in_values_of_its_fork(sources: Path):
    flags = [f"--{name}" if value is None else f"--{name}={value}" for name, value in SGLANG_TPU.flags]
    flags = [flag.replace("$(LWS_WORKER_INDEX)", "0").replace("$(LWS_LEADER_ADDRESS)", "leader") for flag in flags]
    fork = [flag for flag in flags if flag.startswith(("--hicache-io-backend", "--attention-backend"))]
    found = parsed(sources, *(flag for flag in flags if flag not in fork))
    assert {flag.partition("=")[0] for flag in found["unknown"]} == REGISTERED_ELSEWHERE
    for flag in fork:
        assert "invalid choice" in run(sources, "--model-path=x", flag).stderr
