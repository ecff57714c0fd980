"""Who may talk to whom in an EKS environment. Everything else is refused."""

from __future__ import annotations

from components.platform.gpu import DCGM_LABELS, DCGM_PORT
from components.platform.gpu import NAMESPACE as GPU_NAMESPACE
from components.serving.envoy_picker_config import PICKER_METRICS_PORT
from components.serving.gateway import LABELS as GATEWAY_LABELS
from components.serving.gateway_config import LISTEN_PORT, STATUS_PORT
from planning.flows import API_SERVER_PORTS, Anywhere, ApiServer, Flow, Pods
from planning.plan import Plan
from planning.settings.eks import EksB300, Jwt, PrometheusMonitoring
from stacks.eks import names
from stacks.eks.weights import copy_namespace

HTTPS_PORT = 443
POD_IDENTITY_PORT = 80
"""Of the agent on each node that hands pods their AWS credentials, at a link-local address."""


def flows(settings: EksB300, planned: Plan) -> tuple[Flow, ...]:
    """The table."""
    port = planned.engine.port
    engines = Pods(namespace=names.SERVING, labels=planned.router.match_labels)
    router = Pods(namespace=names.SERVING, labels=dict(names.ROUTER_LABELS))
    gateway = Pods(namespace=names.SERVING, labels=dict(GATEWAY_LABELS))
    smoke = Pods(namespace=names.SERVING, labels=dict(names.SMOKE_LABELS))
    staging = Pods(namespace=names.WEIGHTS, labels=dict(names.STAGING_LABELS))
    copying = Pods(namespace=copy_namespace(settings), labels=dict(names.HYDRATION_LABELS))
    outside = (HTTPS_PORT, POD_IDENTITY_PORT)
    proxy = settings.weights.staging.proxy_port
    hub = outside if proxy is None else tuple(dict.fromkeys((*outside, proxy)))
    table = [
        Flow(
            name="requests",
            source=Anywhere(),
            target=gateway,
            ports=(LISTEN_PORT,),
            why="from the load balancer, over any node",
        ),
        Flow(
            name="route", source=gateway, target=router, ports=(names.ROUTER_PORT,), why="the gateway asks the router"
        ),
        Flow(name="serve", source=router, target=engines, ports=(port,), why="requests, and the engines' own counters"),
        Flow(
            name="watch-pods",
            source=router,
            target=ApiServer(),
            ports=API_SERVER_PORTS,
            why="the picker follows its pool",
        ),
        Flow(
            name="prove",
            source=smoke,
            target=router,
            ports=(names.ROUTER_PORT,),
            why="the smoke check asks like a client",
        ),
        Flow(name="prove-reuse", source=smoke, target=engines, ports=(port,), why="counters of reused prefixes"),
        Flow(name="stage", source=staging, target=Anywhere(), ports=hub, why="the hub, S3, and credentials"),
        Flow(name="copy", source=copying, target=Anywhere(), ports=outside, why="S3 and credentials"),
    ]
    if isinstance(settings.gateway.auth, Jwt):
        table.append(
            Flow(name="keys", source=gateway, target=Anywhere(), ports=(HTTPS_PORT,), why="the issuer's public keys")
        )
    scraped = ((engines, port, "engines"), (gateway, STATUS_PORT, "gateway"), (router, PICKER_METRICS_PORT, "router"))
    if isinstance(settings.monitoring, PrometheusMonitoring):
        prometheus = Pods(namespace=names.MONITORING, labels=dict(names.PROMETHEUS_LABELS))
        table += [
            Flow(name=f"scrape-{what}", source=prometheus, target=target, ports=(at,), why="metrics")
            for target, at, what in scraped
        ]
        table += [
            Flow(
                name="scrape-gpus",
                source=prometheus,
                target=Pods(namespace=GPU_NAMESPACE, labels=dict(DCGM_LABELS)),
                ports=(DCGM_PORT,),
                why="metrics",
            ),
            Flow(
                name="find-targets", source=prometheus, target=ApiServer(), ports=API_SERVER_PORTS, why="pods to scrape"
            ),
        ]
    else:
        # The managed collector's interfaces are in the VPC, not in the cluster.
        table += [
            Flow(name=f"scrape-{what}", source=Anywhere(), target=target, ports=(at,), why="the managed collector")
            for target, at, what in scraped
        ]
    return tuple(table)
