"""A stack that was on an embedded cluster which is gone starts over, by the real engine on a state of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.dev.pulumi import Stack
from sandbox.toolchain import built_engine

FORMER = {
    "urn": "urn:pulumi:dev::llm-serving::test:index:Object::former",
    "custom": False,
    "type": "test:index:Object",
}


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """A stack with one resource, in a project of its own."""
    (tmp_path / "Pulumi.yaml").write_text("name: llm-serving\nruntime: python\n")
    stack = Stack(engine=built_engine(), name="dev", project=tmp_path, state=tmp_path / "state")
    stack.select()
    held = deployment(stack)
    held["deployment"]["resources"] = [FORMER]
    (tmp_path / "held.json").write_text(json.dumps(held))
    stack.run("stack", "import", "--file", str(tmp_path / "held.json"), "--stack", "dev")
    return stack


def deployment(stack: Stack) -> dict[str, Any]:
    return dict(json.loads(stack.ask("stack", "export", "--stack", "dev") or "{}"))


def names(stack: Stack) -> list[str]:
    resources = deployment(stack)["deployment"].get("resources") or []
    return [each["urn"].rpartition("::")[2] for each in resources]


def test_a_stack_on_the_same_cluster_keeps_what_it_has(stack: Stack) -> None:
    assert not stack.start_over_on_another("one")
    assert not stack.start_over_on_another("one")
    assert names(stack) == ["former"]


def test_a_stack_whose_cluster_was_replaced_forgets_the_objects_that_went_with_it(stack: Stack) -> None:
    assert not stack.start_over_on_another("one")
    assert stack.start_over_on_another("two")
    assert not stack.exists()
    stack.select()
    assert names(stack) == []
    assert not stack.start_over_on_another("two")
