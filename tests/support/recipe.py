"""The EKS recipe's document, read as it is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

RECIPE = Path(__file__).parents[1] / "seeds" / "eks-b300-recipe.txt"
FILES = (
    "inference-class.yaml",
    "inference-cluster.yaml",
    "model-cache.yaml",
    "model-deployment.yaml",
    "model-service.yaml",
)


@cache
def recipe_text() -> str:
    return RECIPE.read_text()


@cache
def manifest(name: str) -> dict[str, Any]:
    """One manifest of the recipe by its file name: it starts after a line with the name and ends before the next one."""
    lines = recipe_text().splitlines()
    start = lines.index(name) + 1
    ends = [
        number
        for number, line in enumerate(lines)
        if number > start and (line in FILES or re.fullmatch(r"[A-Z]\w+", line))
    ]
    text = "\n".join(lines[start : min(ends, default=len(lines))])
    return dict(yaml.safe_load(text))


def engine_container() -> dict[str, Any]:
    """The engine's container as the recipe has it."""
    (engine,) = manifest("model-deployment.yaml")["spec"]["template"]["spec"]["engines"]
    (member,) = engine["members"]
    (container,) = member["template"]["spec"]["containers"]
    return dict(container)


def device_selector() -> str:
    """The CEL expression that picks the GPUs."""
    (engine,) = manifest("model-deployment.yaml")["spec"]["template"]["spec"]["engines"]
    (device,) = engine["members"][0]["nodeSelector"]["devices"]
    (selector,) = device["selectors"]
    return str(selector["cel"]).strip()
