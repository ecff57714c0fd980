"""What is measured and what wakes somebody: scrape targets, alert rules and dashboards as plain values. No Pulumi."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import yaml

SCRAPE_SECONDS = 15

NOTICE_BEFORE_END = timedelta(hours=24)
"""The first warning: long enough to extend the block or to buy the next one."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Pods to scrape. job: its name in the metrics. labels: that the pods carry. port: name of the container's port."""

    job: str
    namespace: str
    labels: Mapping[str, str]
    port: str
    path: str = "/metrics"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert: PromQL, how long it must hold, whom it concerns, and what to do."""

    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    action: str

    def rule(self) -> dict[str, Any]:
        """As a Prometheus rule file has it."""
        rule: dict[str, Any] = {
            "alert": self.name,
            "expr": self.expression,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "action": self.action},
        }
        return {**rule, "for": f"{self.minutes}m"} if self.minutes else rule


def scrape_configuration(targets: Sequence[Target]) -> str:
    """A Prometheus configuration that finds each target's pods by label and scrapes one named port."""
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s"},
            "scrape_configs": [_scrape(target) for target in targets],
        },
        sort_keys=False,
    )


def _scrape(target: Target) -> dict[str, Any]:
    keep = [
        {"source_labels": [f"__meta_kubernetes_pod_label_{_sanitised(key)}"], "regex": value, "action": "keep"}
        for key, value in target.labels.items()
    ]
    return {
        "job_name": target.job,
        "metrics_path": target.path,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [target.namespace]}}],
        "relabel_configs": [
            *keep,
            {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": target.port, "action": "keep"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            {"source_labels": ["__meta_kubernetes_pod_node_name"], "target_label": "node"},
        ],
    }


def _sanitised(label: str) -> str:
    """A label name as Prometheus' discovery writes it."""
    return "".join(character if character.isalnum() else "_" for character in label)


def rule_file(group: str, alerts: Sequence[Alert]) -> str:
    """A Prometheus rule file with one group."""
    return yaml.safe_dump({"groups": [{"name": group, "rules": [alert.rule() for alert in alerts]}]}, sort_keys=False)


def sglang_alerts(*, job: str, running_limit: int, startup_seconds: int) -> tuple[Alert, ...]:
    """What can go wrong with SGLang engines, by its own metrics (sglang 0.5.23).

    running_limit: --max-running-requests. startup_seconds: the start-up budget.
    """
    mine = f'{{job="{job}"}}'
    return (
        Alert(
            name="EngineDown",
            # One that is starting was never up under its pod's name, and does not count.
            expression=f"up{mine} == 0 and max_over_time(up{mine}[1d]) == 1",
            minutes=5,
            severity="page",
            summary="An engine that served does not answer.",
            action="See the pod's log and its node's conditions.",
        ),
        Alert(
            name="NoEngineServes",
            expression=f"absent(up{mine} == 1)",
            minutes=math.ceil(startup_seconds / 60),
            severity="page",
            summary=f"No engine has answered for as long as a start may take ({startup_seconds} s).",
            action="See whether the capacity block is active, its nodes are there, and what the engine's pod waits for.",
        ),
        Alert(
            name="EngineQueueGrows",
            expression=f"sglang:num_queue_reqs{mine} > {running_limit}",
            minutes=10,
            severity="page",
            summary="More requests wait than an engine can run at once.",
            action="Add a replica if the capacity block has a free instance; otherwise shed load at the gateway.",
        ),
        Alert(
            name="KvPoolFull",
            expression=f"sglang:token_usage{mine} > 0.95",
            minutes=10,
            severity="warning",
            summary="The KV pool is nearly full.",
            action="Long contexts crowd each other out; lower --context-length or add a replica.",
        ),
        Alert(
            name="StatePoolFull",
            expression=f"sglang:mamba_usage{mine} > 0.95 and sglang:token_usage{mine} < 0.6",
            minutes=10,
            severity="warning",
            summary="Linear-attention states, not KV, limit the engine.",
            action="Lower --mamba-max-states-per-path or --max-running-requests.",
        ),
        Alert(
            name="RequestsRetracted",
            expression=f"sglang:num_retracted_reqs{mine} > 0",
            minutes=5,
            severity="warning",
            summary="Running requests are thrown back into the queue.",
            action="Lower --max-running-requests.",
        ),
        Alert(
            name="PrefixReuseCollapsed",
            expression=(
                f"avg_over_time(sglang:cache_hit_rate{mine}[30m]) < 0.5 * avg_over_time(sglang:cache_hit_rate{mine}[24h])"
            ),
            minutes=30,
            severity="warning",
            summary="Prefixes are reused less than half as often as over the last day.",
            action="Check that the endpoint picker runs and that clients keep their system prompts stable.",
        ),
    )


def gpu_alerts() -> tuple[Alert, ...]:
    """Faults that the driver reports, by DCGM exporter's metrics."""
    return (
        Alert(
            name="GpuXid",
            expression="DCGM_FI_DEV_XID_ERRORS > 0",
            minutes=0,
            severity="page",
            summary="A GPU reported an Xid error.",
            action="Node repair reboots the node for hardware faults; look at the Xid's number before requests return.",
        ),
        Alert(
            name="GpuMissing",
            expression="count by (node) (DCGM_FI_DEV_GPU_TEMP) != 8",
            minutes=10,
            severity="page",
            summary="A node does not show its eight GPUs.",
            action="Reboot the node; if that does not help, open a case with AWS: the block has no spare.",
        ),
    )


def block_alerts(*, ends_at: datetime, drain_at: datetime) -> tuple[Alert, ...]:
    """The capacity block's end, which nothing can move: a day ahead, and when it is time to drain.

    The end is a constant, so that the alert needs no exporter and fires even when everything else is silent.
    """
    end = int(ends_at.timestamp())
    drain = int((ends_at - drain_at).total_seconds())
    notice = int(NOTICE_BEFORE_END.total_seconds())
    return (
        Alert(
            name="CapacityBlockEndsWithinADay",
            expression=f"vector({end}) - vector(time()) < {notice}",
            minutes=0,
            severity="warning",
            summary=f"The capacity block ends at {ends_at:%Y-%m-%d %H:%M} UTC.",
            action="Extend the block or buy the next one (python -m components.aws.buy_block).",
        ),
        Alert(
            name="CapacityBlockDrainNow",
            expression=f"vector({end}) - vector(time()) < {drain}",
            minutes=0,
            severity="page",
            summary=f"The capacity block ends at {ends_at:%H:%M} UTC; EKS takes its nodes 40 minutes before.",
            action="Drain now: docs/eks-b300.md, 'The end of a block'.",
        ),
    )


def dashboard(title: str, panels: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """A Grafana dashboard of time series: (title, PromQL, unit) each, two in a row."""
    return {
        "title": title,
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": name,
                "datasource": {"type": "prometheus", "uid": "${source}"},
                "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
                "fieldConfig": {"defaults": {"unit": unit}},
                "targets": [{"refId": "A", "expr": expression, "legendFormat": "{{pod}}"}],
            }
            for number, (name, expression, unit) in enumerate(panels)
        ],
    }


def sglang_dashboard(*, job: str) -> dict[str, Any]:
    """Engines at a glance: load, pools, prefix reuse, latencies."""
    mine = f'{{job="{job}"}}'

    def quantile(metric: str) -> str:
        return f"histogram_quantile(0.95, sum by (le, pod) (rate({metric}_bucket{mine}[5m])))"

    return dashboard(
        "SGLang engines",
        (
            ("Running requests", f"sglang:num_running_reqs{mine}", "short"),
            ("Waiting requests", f"sglang:num_queue_reqs{mine}", "short"),
            ("KV pool in use", f"sglang:token_usage{mine}", "percentunit"),
            ("State pool in use", f"sglang:mamba_usage{mine}", "percentunit"),
            ("Prefix hit rate", f"sglang:cache_hit_rate{mine}", "percentunit"),
            ("Generated tokens per second", f"sglang:gen_throughput{mine}", "short"),
            ("Time to first token, p95", quantile("sglang:time_to_first_token_seconds"), "s"),
            ("Time between tokens, p95", quantile("sglang:inter_token_latency_seconds"), "s"),
        ),
    )
