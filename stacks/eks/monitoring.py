"""What is measured, and where to: from settings and plan to the components' arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from catalog.artifacts import PROMETHEUS
from components.aws.monitoring import ManagedPrometheusArgs
from components.aws.network import Network
from components.platform.gpu import DCGM_LABELS
from components.platform.gpu import NAMESPACE as GPU_NAMESPACE
from components.platform.monitoring import (
    Alert,
    Target,
    block_alerts,
    gpu_alerts,
    rule_file,
    scrape_configuration,
    sglang_alerts,
)
from components.platform.prometheus import PrometheusArgs
from components.serving.gateway import LABELS as GATEWAY_LABELS
from planning.plan import Plan
from planning.settings.eks import (
    EksB300,
    ManagedPrometheusMonitoring,
    PrometheusMonitoring,
)
from stacks.eks.names import ENGINE_JOB, MONITORING, ROUTER_LABELS, SERVING, SYSTEM, image, known_block


def targets(planned: Plan) -> tuple[Target, ...]:
    """What is scraped."""
    return (
        Target(job=ENGINE_JOB, namespace=SERVING, labels=planned.router.match_labels, port="http"),
        Target(job="gateway", namespace=SERVING, labels=GATEWAY_LABELS, port="status", path="/stats/prometheus"),
        Target(job="router", namespace=SERVING, labels=ROUTER_LABELS, port="metrics"),
        Target(job="gpu", namespace=GPU_NAMESPACE, labels=DCGM_LABELS, port="metrics"),
    )


def alerts(planned: Plan) -> Mapping[str, Sequence[Alert]]:
    """Alert rules by group."""
    block, schedule = known_block(planned)
    running = int(
        next(flag.partition("=")[2] for flag in planned.engine.arguments if flag.startswith("--max-running-requests="))
    )
    return {
        "engine": sglang_alerts(
            job=ENGINE_JOB, running_limit=running, startup_seconds=planned.startup.limits.startup_seconds
        ),
        "gpu": gpu_alerts(),
        "capacity-block": block_alerts(ends_at=block.end, drain_at=schedule.drain_at),
    }


def prometheus(settings: EksB300, monitoring: PrometheusMonitoring, planned: Plan) -> PrometheusArgs:
    """Prometheus in the cluster."""
    return PrometheusArgs(
        namespace=MONITORING,
        image=image(PROMETHEUS, settings),
        scrape_configuration=scrape_configuration(targets(planned)),
        rules={f"{group}.rules.yaml": rule_file(group, rules) for group, rules in alerts(planned).items()},
        namespaces=(SERVING, GPU_NAMESPACE),
        provisioner="ebs.csi.aws.com",
        storage_gib=monitoring.storage_gib,
        retention_days=monitoring.retention_days,
        node_selector=SYSTEM,
    )


def managed_prometheus(
    settings: EksB300,
    monitoring: ManagedPrometheusMonitoring,
    planned: Plan,
    *,
    net: Network,
    cluster_arn: pulumi.Input[str],
    security_group: pulumi.Input[str],
) -> ManagedPrometheusArgs:
    """Amazon Managed Service for Prometheus."""
    return ManagedPrometheusArgs(
        cluster_name=settings.cluster.name,
        cluster_arn=cluster_arn,
        subnets=tuple(net.private_subnets.values()),
        security_group=security_group,
        scrape_configuration=scrape_configuration(targets(planned)),
        rules={group: rule_file(group, rules) for group, rules in alerts(planned).items()},
        region=settings.region,
        alert_topic=monitoring.alert_topic,
    )
