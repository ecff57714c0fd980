"""Alert rules, dashboards and scrape configuration."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import promql_parser
import pytest
import yaml

from components.platform.monitoring import (
    Alert,
    Target,
    block_alerts,
    gpu_alerts,
    rule_file,
    scrape_configuration,
    sglang_alerts,
    sglang_dashboard,
)

END = datetime(2026, 12, 10, 11, 30, tzinfo=UTC)
ALERTS = (
    *sglang_alerts(job="engine", running_limit=48, startup_seconds=7200),
    *gpu_alerts(),
    *block_alerts(ends_at=END, drain_at=END - timedelta(minutes=60)),
)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_is_promql_that_a_parser_accepts_and_says_what_to_do(alert: Alert) -> None:
    promql_parser.parse(alert.expression)
    assert alert.summary.endswith(".")
    assert alert.action


def test_every_panel_of_the_dashboard_is_promql_that_a_parser_accepts() -> None:
    panels = sglang_dashboard(job="engine")["panels"]
    assert len(panels) == 8
    for panel in panels:
        promql_parser.parse(panel["targets"][0]["expr"])


def test_alerts_use_only_metrics_that_sglang_exports() -> None:
    used = set(
        re.findall(
            r"sglang:\w+", json.dumps([alert.expression for alert in ALERTS]) + json.dumps(sglang_dashboard(job="e"))
        )
    )
    exported = set(Path(__file__).with_name("sglang_metrics.txt").read_text().split())
    assert {name.removesuffix("_bucket") for name in used} <= exported


def test_an_engine_that_starts_pages_nobody_until_a_start_has_taken_longer_than_it_may() -> None:
    alerts = {alert.name: alert for alert in sglang_alerts(job="engine", running_limit=48, startup_seconds=7201)}
    assert "and max_over_time" in alerts["EngineDown"].expression
    assert alerts["NoEngineServes"].minutes * 60 >= 7201


@pytest.mark.parametrize(
    ("left", "firing"),
    [
        (timedelta(hours=25), set()),
        (timedelta(hours=23), {"CapacityBlockEndsWithinADay"}),
        (timedelta(minutes=61), {"CapacityBlockEndsWithinADay"}),
        (timedelta(minutes=59), {"CapacityBlockEndsWithinADay", "CapacityBlockDrainNow"}),
    ],
)
def test_the_end_of_the_block_warns_a_day_ahead_and_pages_an_hour_ahead(left: timedelta, firing: set[str]) -> None:
    now = (END - left).timestamp()
    fires = set()
    for alert in block_alerts(ends_at=END, drain_at=END - timedelta(minutes=60)):
        end, limit = re.fullmatch(r"vector\((\d+)\) - vector\(time\(\)\) < (\d+)", alert.expression).groups()
        if int(end) - now < int(limit):
            fires.add(alert.name)
    assert fires == firing


def test_the_drain_alert_comes_before_eks_takes_the_nodes() -> None:
    (_, drain) = block_alerts(ends_at=END, drain_at=END - timedelta(minutes=60))
    assert int(drain.expression.rpartition(" ")[2]) > 40 * 60


def test_a_rule_file_is_what_prometheus_reads() -> None:
    groups = yaml.safe_load(rule_file("engine", ALERTS))["groups"]
    assert [rule["alert"] for rule in groups[0]["rules"]] == [alert.name for alert in ALERTS]
    assert "for" not in next(rule for rule in groups[0]["rules"] if rule["alert"] == "CapacityBlockDrainNow")


def test_scraping_keeps_only_pods_with_the_labels_and_the_port_with_the_name() -> None:
    target = Target(job="engine", namespace="ml-team", labels={"llm-d.ai/engine-type": "sglang"}, port="http")
    (config,) = yaml.safe_load(scrape_configuration([target]))["scrape_configs"]
    kept = {
        rule["source_labels"][0]: rule["regex"] for rule in config["relabel_configs"] if rule.get("action") == "keep"
    }
    assert kept == {
        "__meta_kubernetes_pod_label_llm_d_ai_engine_type": "sglang",
        "__meta_kubernetes_pod_container_port_name": "http",
    }
