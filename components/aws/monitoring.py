"""Amazon Managed Service for Prometheus: a workspace, a collector outside the cluster, and rules."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws


@dataclass(frozen=True, kw_only=True)
class ManagedPrometheusArgs:
    """scrape_configuration: a Prometheus scrape configuration. rules: a Prometheus rule file by namespace.

    subnets: two or more; the collector gets interfaces there. alert_topic: SNS topic ARN that alerts are sent to, or None.
    """

    cluster_name: str
    cluster_arn: pulumi.Input[str]
    subnets: tuple[pulumi.Input[str], ...]
    security_group: pulumi.Input[str]
    scrape_configuration: str
    rules: dict[str, str]
    region: str
    alert_topic: str | None = None


class ManagedPrometheus(pulumi.ComponentResource):
    """Metrics leave the cluster as they are made: nothing is lost with a node, and no monitoring runs beside the engines.

    workspace_id, endpoint: for Grafana and for queries.
    """

    def __init__(self, name: str, *, args: ManagedPrometheusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:ManagedPrometheus", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        workspace = aws.amp.Workspace(name, alias=args.cluster_name, opts=child)
        aws.amp.Scraper(
            name,
            alias=args.cluster_name,
            source={
                "eks": {
                    "cluster_arn": args.cluster_arn,
                    "subnet_ids": list(args.subnets),
                    "security_group_ids": [args.security_group],
                }
            },
            destination={"amp": {"workspace_arn": workspace.arn}},
            scrape_configuration=args.scrape_configuration,
            opts=child,
        )
        for namespace, data in args.rules.items():
            aws.amp.RuleGroupNamespace(
                f"{name}-{namespace}", name=namespace, workspace_id=workspace.id, data=data, opts=child
            )
        if args.alert_topic:
            definition = alert_manager(topic=args.alert_topic, region=args.region)
            aws.amp.AlertManagerDefinition(name, workspace_id=workspace.id, definition=definition, opts=child)
        self.workspace_id: pulumi.Output[str] = workspace.id
        self.endpoint: pulumi.Output[str] = workspace.prometheus_endpoint
        self.register_outputs({"workspaceId": self.workspace_id, "endpoint": self.endpoint})


def alert_manager(*, topic: str, region: str) -> str:
    """An alert manager definition that sends every alert to one SNS topic."""
    return "\n".join(
        [
            "alertmanager_config: |",
            "  route:",
            "    receiver: default",
            "    group_by: [alertname]",
            "  receivers:",
            "    - name: default",
            "      sns_configs:",
            f"        - topic_arn: {topic}",
            "          sigv4:",
            f"            region: {region}",
            "          send_resolved: true",
            "",
        ]
    )
