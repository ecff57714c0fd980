"""The dev stack on the embedded cluster, for the levels that need it up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox import cluster
from sandbox.cluster import Layout
from sandbox.images import make_bundle
from tests.support.pulumi import PROJECT, Outcome, Stack


@dataclass(frozen=True)
class Dev:
    """A dev stack, its cluster, what its first `up` did, and what was in the cluster before."""

    stack: Stack
    layout: Layout
    first: Outcome
    before: set[str]


@contextmanager
def dev_up(layout: Layout, directory: Path) -> Iterator[Dev]:
    """The dev stack after an `up`; taken down again whatever happens."""
    before = everything(layout)
    stack = dev_stack(layout, directory)
    try:
        yield Dev(stack, layout, stack.up().succeeded(), before)
    finally:
        stack.unlock()
        stack.destroy()


def dev_config(layout: Layout, bundle: Path) -> dict[str, Any]:
    """What Pulumi.dev.yaml says, for this cluster."""
    committed = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text())["config"]
    config = {key.removeprefix("llm-serving:"): value for key, value in committed.items()}
    config["kubernetes"] = config["kubernetes"] | {"kubeconfig": str(layout.kubeconfig)}
    config["artifacts"] = config["artifacts"] | {"bundle": str(bundle)}
    return config


def dev_stack(layout: Layout, directory: Path, *, name: str = "dev") -> Stack:
    """A dev stack with its own state, configured and not yet up."""
    bundle = directory / "artifacts"
    make_bundle(bundle)
    stack = Stack(name=name, directory=directory)
    stack.configure(dev_config(layout, bundle))
    return stack


def changed(config: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of a config with one setting changed; path is dotted."""
    first, _, rest = path.partition(".")
    return config | {first: changed(dict(config.get(first) or {}), rest, value) if rest else value}


def everything(layout: Layout) -> set[str]:
    """Every object in the cluster, but for those that come and go by themselves."""
    kinds = cluster.kubectl(layout, "api-resources", "--verbs=list", "--output=name").split()
    passing = {
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "pods",
        "endpointslices.discovery.k8s.io",
        "endpoints",
    }
    wanted = ",".join(sorted(set(kinds) - passing))
    columns = "custom-columns=KIND:.kind,NS:.metadata.namespace,NAME:.metadata.name"
    listed = cluster.kubectl(
        layout, "get", wanted, "--all-namespaces", "--no-headers", "--ignore-not-found", f"--output={columns}"
    )
    return {" ".join(line.split()) for line in listed.splitlines()}
