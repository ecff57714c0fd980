"""The routers' configurations against what each release's sources know."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.router_plugins import PLUGINS
from planning.plan import plan
from planning.router import Flavour, PickerConfig, Plugin, Profile, ProfilePlugin, unified_picker
from planning.router_check import problems
from planning.settings import load
from tests.support.configs import NOW, values

PLANNED: list[tuple[str, dict[str, object]]] = [
    ("eks-b300", {"router": "llm-d"}),
    ("eks-b300", {"router": "inference-extension"}),
    ("gke-a4x-max", {}),
    ("gke-tpu7x", {}),
]


@pytest.mark.parametrize(("stack", "changes"), PLANNED)
def test_every_planned_configuration_is_one_that_its_router_knows(stack: str, changes: dict[str, object]):
    router = plan(load(values(stack, changes)), now=NOW).router  # type: ignore[arg-type]
    assert list(problems(router.picker, router.flavour)) == []


def unified(flavour: Flavour = "llm-d") -> PickerConfig:
    return unified_picker(flavour=flavour, block_tokens=64, max_prefix_tokens=1000, lru_blocks=10)


def disaggregated() -> PickerConfig:
    return plan(load(values("gke-a4x-max")), now=NOW).router.picker  # type: ignore[arg-type]


def without(config: PickerConfig, kind: str) -> PickerConfig:
    return config.model_copy(update={"plugins": tuple(found for found in config.plugins if found.type != kind)})


def with_parameters(config: PickerConfig, kind: str, **parameters: object) -> PickerConfig:
    changed = tuple(
        found.model_copy(update={"parameters": {**found.parameters, **parameters}}) if found.type == kind else found
        for found in config.plugins
    )
    return config.model_copy(update={"plugins": changed})


BROKEN: dict[str, tuple[Callable[[], PickerConfig], Flavour, str]] = {
    "a header of another release": (
        lambda: unified().model_copy(update={"api_version": "llm-d.ai/v1"}),
        "llm-d",
        "the header llm-d.ai/v1",
    ),
    "a plugin of another router": (disaggregated, "inference-extension", "has no plugin disagg-profile-handler"),
    "a misspelt parameter": (
        lambda: with_parameters(unified(), "approx-prefix-cache-producer", blockSizeToken=64),
        "llm-d",
        "has no parameter blockSizeToken",
    ),
    "a misspelt nested parameter": (
        lambda: with_parameters(
            disaggregated(), "precise-prefix-cache-producer", tokenProcessorConfig={"blockSizes": 1}
        ),
        "llm-d",
        "tokenProcessorConfig has no parameter blockSizes",
    ),
    "a profile that uses what is not there": (
        lambda: without(unified(), "queue-scorer"),
        "llm-d",
        "uses queue-scorer, which is not configured",
    ),
    "a decider that is not there": (
        lambda: without(disaggregated(), "always-disagg-pd-decider"),
        "llm-d",
        "refers to always-disagg-pd-decider",
    ),
    "a precise producer that the scorer does not name": (
        lambda: with_parameters(disaggregated(), "prefix-cache-scorer", prefixMatchInfoProducerName="max-score-picker"),
        "llm-d",
        "would use an approximate producer",
    ),
    "a precise producer without endpoints": (
        lambda: disaggregated().model_copy(update={"sources": ()}),
        "llm-d",
        "is told of no endpoints",
    ),
    "two profiles and no handler": (
        lambda: without(disaggregated(), "disagg-profile-handler"),
        "llm-d",
        "exactly one profile handler",
    ),
    "a scorer without producer": (
        lambda: PickerConfig(
            api_version="llm-d.ai/v1alpha1",
            plugins=(Plugin(type="prefix-cache-scorer"),),
            profiles=(Profile(name="default", plugins=(ProfilePlugin(ref="prefix-cache-scorer"),)),),
        ),
        "llm-d",
        "has no producer",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_configuration_is_noticed(name: str):
    config, flavour, told = BROKEN[name]
    assert any(told in problem for problem in problems(config(), flavour)), list(problems(config(), flavour))


def test_both_routers_take_what_the_unified_shape_uses():
    used = {plugin.type for plugin in unified().plugins}
    assert used <= set(PLUGINS["llm-d"]) & set(PLUGINS["inference-extension"])


def test_the_document_has_no_empty_parts():
    document = unified().document()
    assert set(document) == {"apiVersion", "kind", "plugins", "schedulingProfiles"}
    assert all("parameters" not in plugin or plugin["parameters"] for plugin in document["plugins"])  # type: ignore[union-attr,index,call-overload]
