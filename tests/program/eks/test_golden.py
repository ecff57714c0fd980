"""The whole EKS environment as it would be registered, compared with what was reviewed.

A change that is meant is accepted with UPDATE_GOLDEN=1; the diff of golden/ is then part of the review.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stacks.render import Rendered, render
from tests.support.eks import settings

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = ("hydration-program", "staging-program", "smoke")
"""ConfigMaps that hold the text of our own programs: that is reviewed where it stands."""
DIGESTS = re.compile(r"(checksum/[\w-]+: )[0-9a-f]{64}")


def rendered() -> dict[str, str]:
    """The environment by provider, each resource under its file name."""
    parts: dict[str, list[str]] = {}
    for resource in render(settings(), stack="eks-b300"):
        if not _is_program(resource):
            text = DIGESTS.sub(r"\1<digest>", _without_programs(resource.text))
            parts.setdefault(resource.file.partition("/")[0], []).append(f"=== {resource.file}\n{text}")
    return {part: "\n".join(texts) for part, texts in parts.items()}


def _is_program(resource: Rendered) -> bool:
    return resource.type.endswith(":ConfigMap") and resource.inputs["metadata"]["name"] in PROGRAMS


def _without_programs(text: str) -> str:
    """Programs that stand in a command are left out as well; their indented block ends where a shallower line begins."""
    return re.sub(r"(?m)^(?P<indent> *)- \|\n(?:(?P=indent)  .*\n|\s*\n)+", r"\g<indent>- <program>\n", text)


@pytest.mark.parametrize("part", ["aws", "kubernetes"])
def test_the_environment_is_the_reviewed_one(part: str) -> None:
    found = rendered()[part]
    file = GOLDEN / f"{part}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
    assert found == file.read_text()


def test_a_render_is_the_same_every_time() -> None:
    assert rendered() == rendered()
