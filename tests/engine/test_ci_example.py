"""The workflow that the docs offer: judged by actionlint, and its credential-free steps run as they stand."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.toolchain import tool
from tests.support.pulumi import PROJECT

WORKFLOW = PROJECT / "docs" / "ci" / "github.yaml"


def steps(job: str) -> dict[str, dict[str, Any]]:
    """The job's named steps."""
    found = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"][job]["steps"]
    return {step["name"]: step for step in found if "name" in step}


def lint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(tool("actionlint")), str(file)], capture_output=True, text=True, check=False)


def test_actionlint_has_nothing_to_say_about_the_workflow() -> None:
    done = lint(WORKFLOW)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_actionlint_would_have_said_so(tmp_path: Path) -> None:
    spoilt = tmp_path / "workflow.yaml"
    spoilt.write_text(WORKFLOW.read_text(encoding="utf-8").replace("github.event_name", "github.event_nam"))
    assert 'property "event_nam" is not defined' in lint(spoilt).stdout


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    """What the two checkouts of the pull request's job leave: `before`, and `after` with one more replica."""
    for name in ("before", "after"):
        directory = tmp_path / name
        directory.mkdir()
        for entry in PROJECT.iterdir():
            if entry.name not in {".state", "Pulumi.dev.yaml"}:
                (directory / entry.name).symlink_to(entry)
        stack = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
        if name == "after":
            stack["config"]["llm-serving:unified"] = {"replicas": 3}
        (directory / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack))
    return tmp_path


def test_a_pull_requests_summary_has_the_plan_and_what_would_differ(checkouts: Path) -> None:
    summary = checkouts / "summary.md"
    environment = {**os.environ, "STACK": "dev", "GITHUB_STEP_SUMMARY": str(summary)}
    for name in ("The plan", "Every resource that would differ"):
        step = steps("change")[name]
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as GitHub's runner starts it
            cwd=checkouts / step.get("working-directory", "."),
            env=environment,
            check=True,
        )
    written = summary.read_text(encoding="utf-8")
    assert written.startswith("#")
    assert "\n-  replicas: 2\n+  replicas: 3\n" in written
