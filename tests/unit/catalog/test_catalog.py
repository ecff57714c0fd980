"""The catalogue: every row has a source and a date, and does not contradict the documents."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import catalog
from catalog.engine_flags import CHOICES, KNOWN_FLAGS
from catalog.hardware import B200, B300, P6_B300
from catalog.models import KIMI_K31_PRO
from catalog.recipes import SGLANG_B300, SGLANG_TPU, VLLM_DECODE, VLLM_PREFILL
from catalog.source import Source
from tests.support.recipe import manifest
from tests.support.seeds import BLOG, GUIDE, RECIPE, stated

KINDS = {"published", "measured", "field note", "assumption"}


def rows() -> Iterator[tuple[str, object]]:
    """Every dataclass instance at module level that has a source, alone or in a tuple."""
    for module in pkgutil.iter_modules(catalog.__path__, "catalog."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for row in value if isinstance(value, tuple) else (value,):
                if dataclasses.is_dataclass(row) and not isinstance(row, type) and hasattr(row, "source"):
                    yield f"{module.name}.{name}", row


def test_every_row_says_where_it_comes_from_and_when():
    found = dict(rows())
    assert len(found) >= 30
    for name, row in found.items():
        source = row.source  # type: ignore[attr-defined]
        assert isinstance(source, Source), name
        assert source.where, name
        assert source.date[:2] == "20", name
        assert source.kind in KINDS, name


def test_the_model_is_the_one_that_the_documents_describe():
    assert KIMI_K31_PRO.revision == manifest("model-cache.yaml")["spec"]["huggingFace"]["revision"]
    assert KIMI_K31_PRO.moe.experts == stated(BLOG, r"across (\d+) routed experts")
    assert KIMI_K31_PRO.kda.layers == stated(GUIDE, r"(\d+) KDA \+ 24 sparse-MLA")
    assert KIMI_K31_PRO.mla.layers == stated(GUIDE, r"69 KDA \+ (\d+) sparse-MLA")
    assert KIMI_K31_PRO.context_tokens == stated(BLOG, r"max_position_embeddings=(\d+)")


def test_the_drivers_memory_passes_the_recipes_selector_on_b300_and_fails_it_on_b200():
    wanted = stated(RECIPE, r'memory.compareTo\(quantity\("(\d+)Gi"\)\)')
    assert B200.memory_bytes / 2**30 < wanted <= B300.memory_bytes / 2**30
    assert (
        B300.compute_capability
        == manifest("inference-class.yaml")["spec"]["devices"][0]["attributes"]["cudaComputeCapability"]["version"]
    )


def test_the_machine_is_the_recipes():
    assert P6_B300.name == manifest("inference-class.yaml")["spec"]["provisioning"]["eks"]["instanceType"]
    assert P6_B300.ranks == manifest("inference-class.yaml")["spec"]["provisioning"]["eks"]["accelerator"]["count"]


def test_every_flag_of_a_recipe_exists_in_its_engines_release():
    for recipe in (SGLANG_B300, VLLM_PREFILL, VLLM_DECODE):
        assert {name for name, _ in recipe.flags} <= KNOWN_FLAGS[recipe.engine]


def test_only_values_of_the_tpu_fork_are_unknown_to_the_release():
    # engines' reference sheet §2: raiden and pallas_tpu_mla_sparse are of the TPU build
    assert {name for name, _ in SGLANG_TPU.flags} <= KNOWN_FLAGS["sglang"]
    unknown = {
        value for name, value in SGLANG_TPU.flags if name in CHOICES["sglang"] and value not in CHOICES["sglang"][name]
    }
    assert unknown == {"raiden"}
