"""The routers' configurations, loaded by the inference extension's real endpoint picker.

llm-d's own picker is not to be had from a registry; its configurations are checked against its plugins' sources in
tests/unit/planning/test_router.py, and what it shares with the inference extension is loaded here.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from planning.plan import plan
from planning.router import PickerConfig, unified_picker
from planning.router_check import problems
from planning.settings import load
from sandbox.toolchain.build import missing, tool
from tests.support.configs import NOW, values

LOADED = "loaded configuration from file/text successfully"
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "none", "user": {}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "current-context": "none",
}
"""A cluster that does not answer: the picker reads its configuration first, and then ends."""


@pytest.fixture(scope="module")
def picker() -> Path:
    if missing(["epp"]):
        pytest.skip("the endpoint picker is not built; `python -m sandbox.toolchain build` builds it")
    return tool("epp")


def said(picker: Path, config: PickerConfig, directory: Path) -> list[dict[str, object]]:
    """The picker's log lines."""
    (directory / "config.yaml").write_text(yaml.safe_dump(config.document()), encoding="utf-8")
    (directory / "kubeconfig").write_text(yaml.safe_dump(NOWHERE), encoding="utf-8")
    command = [str(picker), "--pool-name=pool", "--pool-namespace=serving", f"--config-file={directory}/config.yaml"]
    environment = {**os.environ, "KUBECONFIG": str(directory / "kubeconfig")}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return [json.loads(line) for line in (ended.stdout + ended.stderr).splitlines() if line.startswith("{")]


def test_the_picker_loads_the_eks_routers_configuration_with_the_engines_sizes(picker: Path, tmp_path: Path):
    planned = plan(load(values("eks-b300", {"router": "inference-extension"})), now=NOW)  # type: ignore[arg-type]
    lines = said(picker, planned.router.picker, tmp_path)
    assert LOADED in [line["msg"] for line in lines]
    (prefix,) = [line["config"] for line in lines if line["msg"] == "Prefix PrepareData initialized"]
    assert isinstance(prefix, dict)
    assert prefix["blockSizeTokens"] == planned.engine.block_tokens
    assert prefix["maxPrefixTokensToMatch"] == planned.engine.context_tokens
    assert prefix["lruCapacityPerServer"] == planned.router.lru_blocks
    assert prefix["autoTune"] is False


def test_the_picker_knows_sglangs_metrics(picker: Path, tmp_path: Path):
    planned = plan(load(values("eks-b300", {"router": "inference-extension"})), now=NOW)  # type: ignore[arg-type]
    engines = [line.get("engine") for line in said(picker, planned.router.picker, tmp_path)]
    assert planned.router.engine in engines


def test_the_picker_refuses_what_the_check_calls_unknown(picker: Path, tmp_path: Path):
    good = unified_picker(flavour="inference-extension", block_tokens=64, max_prefix_tokens=1000, lru_blocks=10)
    renamed = tuple(
        plugin.model_copy(update={"type": "queu-scorer"}) if plugin.type == "queue-scorer" else plugin
        for plugin in good.plugins
    )
    bad = good.model_copy(update={"plugins": renamed})
    assert list(problems(bad, "inference-extension"))
    lines = said(picker, bad, tmp_path)
    assert LOADED not in [line["msg"] for line in lines]
    assert any("queu-scorer" in str(line.get("error", "")) for line in lines)


def test_the_picker_refuses_another_releases_header(picker: Path, tmp_path: Path):
    good = unified_picker(flavour="inference-extension", block_tokens=64, max_prefix_tokens=1000, lru_blocks=10)
    lines = said(picker, good.model_copy(update={"api_version": "llm-d.ai/v1"}), tmp_path)
    assert LOADED not in [line["msg"] for line in lines]


def test_the_picker_has_none_of_the_plugins_that_only_llm_d_has(picker: Path, tmp_path: Path):
    planned = plan(load(values("gke-a4x-max")), now=NOW)  # type: ignore[arg-type]
    own_header = planned.router.picker.model_copy(update={"api_version": "inference.networking.x-k8s.io/v1alpha1"})
    lines = said(picker, own_header, tmp_path)
    assert LOADED not in [line["msg"] for line in lines]
    assert list(problems(own_header, "inference-extension"))
