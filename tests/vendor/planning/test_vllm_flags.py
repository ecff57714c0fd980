"""The vLLM recipes' flags, looked up in the published wheel's sources."""

from __future__ import annotations

import ast
import re
import zipfile

import pytest

from catalog.engine_flags import KNOWN_FLAGS
from catalog.recipes import VLLM_DECODE, VLLM_PREFILL
from planning.gke_gpu import plan_a4x
from planning.settings import load
from sandbox.engine_wheels import wheel
from tests.support.configs import NOW, values

SOURCES = re.compile(r"vllm/engine/arg_utils\.py|vllm/entrypoints/(?:\w+/)*cli_args\.py")


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Every option string and every field name in the files that define vLLM's command line."""
    found = wheel("vllm")
    if found is None:
        pytest.skip("vllm's wheel is not here; `python -m sandbox.engine_wheels vllm` fetches it (336 MB)")
    names: set[str] = set()
    with zipfile.ZipFile(found) as archive:
        for name in filter(SOURCES.fullmatch, archive.namelist()):
            for node in ast.walk(ast.parse(archive.read(name))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("--"):
                    names.add(node.value.lstrip("-").replace("_", "-"))
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    names.add(node.target.id.replace("_", "-"))
    return names


def test_every_flag_of_both_roles_is_in_the_release(words: set[str]):
    planned = plan_a4x(load(values("gke-a4x-max")), now=NOW)  # type: ignore[arg-type]
    flags = {flag.partition("=")[0].lstrip("-") for engine in planned.engines for flag in engine.arguments}
    assert {name for name, _ in (*VLLM_PREFILL.flags, *VLLM_DECODE.flags)} <= flags
    assert {flag.removeprefix("no-") for flag in flags} <= words


def test_the_catalogues_flags_are_in_the_release(words: set[str]):
    assert {
        flag for flag in KNOWN_FLAGS["vllm"] if flag.removeprefix("no-") not in words and flag not in words
    } == set()


def test_the_release_has_no_expert_parallel_size(words: set[str]):
    assert "ep-size" not in words
    assert "expert-parallel-size" not in words
