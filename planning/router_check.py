"""A picker's configuration, checked as the router itself would read it: plugins, parameters, references, handlers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.router_plugins import PLUGINS, Parameters
from planning.router import API_VERSION, Flavour, PickerConfig

PRODUCERS = ("approx-prefix-cache-producer", "precise-prefix-cache-producer")


def problems(config: PickerConfig, flavour: Flavour) -> Iterator[str]:
    """Everything that the router would refuse, or take and do nothing with."""
    if config.api_version != API_VERSION[flavour]:
        yield f"the header {config.api_version} is not {API_VERSION[flavour]}"
    known = PLUGINS[flavour]
    names = {plugin.name or plugin.type for plugin in config.plugins}
    for plugin in config.plugins:
        if plugin.type not in known:
            yield f"{flavour} has no plugin {plugin.type}"
        else:
            yield from _unknown(plugin.parameters, known[plugin.type], plugin.type)
        for value in _references(plugin.parameters):
            if value not in names:
                yield f"{plugin.type} refers to {value}, which is not configured"
    for profile in config.profiles:
        for used in profile.plugins:
            if used.ref not in names:
                yield f"profile {profile.name} uses {used.ref}, which is not configured"
    for source, extractors in config.sources:
        for name in (source, *extractors):
            if name not in names:
                yield f"the data layer uses {name}, which is not configured"
    yield from _silent(config)


def _unknown(given: Mapping[str, object], known: Parameters, path: str) -> Iterator[str]:
    for name, value in given.items():
        inner = known.get(name)
        if name not in known:
            yield f"{path} has no parameter {name}"
        elif inner is not None and isinstance(value, dict):
            yield from _unknown(value, inner, f"{path}.{name}")


def _references(parameters: Mapping[str, object]) -> Iterator[str]:
    for name, value in parameters.items():
        if name.endswith("ProducerName") and isinstance(value, str):
            yield value
        if name == "deciders" and isinstance(value, dict):
            yield from (str(decider) for decider in value.values())


def _silent(config: PickerConfig) -> Iterator[str]:
    """What both routers take without a word and then don't do."""
    types = {plugin.type: plugin for plugin in config.plugins}
    handlers = [name for name in types if name.endswith("profile-handler")]
    if len(config.profiles) > 1 and len(handlers) != 1:
        yield f"{len(config.profiles)} profiles need exactly one profile handler"
    precise, scorer = types.get(PRODUCERS[1]), types.get("prefix-cache-scorer")
    if precise and scorer and scorer.parameters.get("prefixMatchInfoProducerName") != (precise.name or precise.type):
        yield "prefix-cache-scorer would use an approximate producer beside the precise one"
    if precise and (precise.name or precise.type) not in {name for _, used in config.sources for name in used}:
        yield "the precise producer is told of no endpoints"
    if scorer and not any(name in types for name in PRODUCERS):
        yield "prefix-cache-scorer has no producer with the engine's block size"
