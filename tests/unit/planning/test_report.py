"""The report and its command: readable, complete, without credentials."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from planning.__main__ import main
from planning.plan import Plan, plan
from planning.report import brief, markdown, output, text
from planning.rules import RULES
from planning.settings import load
from tests.support.configs import FILLED, NOW, ROOT, values

STACKS = sorted(FILLED)


def planned(stack: str, **changes: object) -> Plan:
    return plan(load(values(stack, changes)), now=NOW)  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the filled-in examples as stack files."""
    for stack in STACKS:
        config = {f"llm-serving:{key}": value for key, value in values(stack).items()}
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("stack", STACKS)
def test_the_text_fits_a_hundred_columns_and_has_no_colour_off_a_terminal(stack: str):
    report = text(planned(stack))
    assert max(map(len, report.splitlines())) <= 100
    assert "\x1b" not in report
    assert "\x1b" in text(planned(stack), colour=True)


@pytest.mark.parametrize("stack", STACKS)
def test_text_and_markdown_tell_every_finding(stack: str):
    found = planned(stack)
    for report in (text(found), markdown(found)):
        for finding in found.findings:
            assert f"[{finding.rule}]" in report


def test_what_stops_it_comes_first():
    report = text(planned("eks-b300", **{"engine.flags.tp-size": 7}))
    assert report.startswith("What stops it")
    assert report.index("sglang-heads") < report.index("eks-b300:")


@pytest.mark.parametrize("stack", STACKS)
def test_the_markdown_has_a_timeline_in_which_nothing_starts_before_what_it_waits_for(stack: str):
    report = markdown(planned(stack))
    chart = report.split("```mermaid\n")[1].split("```")[0]
    assert chart.startswith("gantt\n")
    rows = re.findall(r"^  (.+) :(?:crit, )?2000-01-(\d\d)T(\d\d):(\d\d), (\d+)m$", chart, re.MULTILINE)
    starts = {name: int(day) * 1440 + int(hour) * 60 + int(minute) for name, day, hour, minute, _ in rows}
    ends = {name: starts[name] + int(minutes) for name, *_, minutes in rows}
    steps = planned(stack).startup.steps
    assert set(starts) == {step.name for step in steps}
    for step in steps:
        for before in step.after:
            assert starts[step.name] >= ends[before] - 2


def test_the_accelerators_are_marked_in_the_timeline():
    chart = markdown(planned("eks-b300"))
    assert re.search(r"loading the weights :crit,", chart)
    assert not re.search(r"staging :crit,", chart)


@pytest.mark.parametrize("stack", STACKS)
def test_json_has_the_promised_parts_with_units_in_their_keys(
    stack: str, directory: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = ["--stack", stack, "--directory", str(directory), "--format", "json", "--now", "2026-12-10T08:00:00Z"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"memory", "startup", "cost", "findings"} <= set(found)
    assert Plan.model_validate(found | {"made_at": NOW}, strict=False).model_dump() == planned(stack).model_dump()
    unitless = [
        key
        for key in _numeric_keys(found["memory"])
        if not re.search(r"gib|tokens|bytes|slots|ranks|margin|pages|low|high", key)
    ]
    assert unitless == []


def _numeric_keys(value: object, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for name, inner in value.items() for found in _numeric_keys(inner, name)]
    if isinstance(value, list):
        return [found for inner in value for found in _numeric_keys(inner, key)]
    return [key] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_a_config_that_can_not_be_used_gives_one_line_each_and_exit_code_1(capsys: pytest.CaptureFixture[str]):
    assert main(["--stack", "eks-b300", "--directory", str(ROOT)]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("error: ") for line in lines)


def test_a_plan_with_errors_has_exit_code_1(directory: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--stack", "eks-b300", "--directory", str(directory), "--now", "2027-01-01T00:00:00Z"]
    assert main(arguments) == 1
    assert "[block-over]" in capsys.readouterr().out


def test_json_of_a_refused_config_has_the_findings(capsys: pytest.CaptureFixture[str]):
    assert main(["--stack", "nothing", "--directory", str(ROOT), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "settings-stack-file"


def test_the_dev_environment_is_told_too(capsys: pytest.CaptureFixture[str]):
    assert main(["--stack", "dev", "--directory", str(ROOT)]) == 0
    assert "Flows" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--stack", "dev", "--now", "soon"], ["--format", "xml"]])
def test_a_wrong_command_line_is_answered_with_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_planning_imports_no_pulumi_and_no_cloud_sdk():
    code = (
        "import sys, planning.plan, planning.settings, planning.eks, planning.gke_gpu, planning.gke_tpu, planning.report;"
        "print([name for name in sys.modules if name.split('.')[0] in ('pulumi', 'pulumi_aws', 'boto3', 'components')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_the_rules_are_listed_with_reason_and_source(capsys: pytest.CaptureFixture[str]):
    assert main(["--rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(RULES) + 2
    assert {line.count(" | ") for line in lines} == {4}


def test_a_preview_is_told_the_verdict_and_every_warning_in_few_lines():
    found = planned("gke-tpu7x")
    told = brief(found)
    assert told.startswith("fits: yes; unified pool 532,352 tokens")
    assert told.count("warning: ") == sum(finding.severity == "warning" for finding in found.findings)
    assert "note: " not in told


@pytest.mark.parametrize("stack", STACKS)
def test_the_stack_output_does_not_change_with_the_clock(stack: str):
    later = plan(load(values(stack)), now=NOW + timedelta(days=5, minutes=7))  # type: ignore[arg-type]
    assert output(planned(stack)) == output(later)
    assert json.loads(json.dumps(output(later))) == output(later)
