"""The dev environment: the production graph in small, on any cluster in a kubeconfig.

Read from top to bottom: restrictions before anything runs, weights before engines, and last the proof that it serves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from catalog.artifacts import (
    ENDPOINT_PICKER,
    ENVOY,
    GATEWAY_API_CRDS,
    INFERENCE_EXTENSION_CRDS,
    LWS_CHART,
    LWS_MANAGER,
    OBJECT_STORE,
    PYTHON,
    SIMULATOR,
    VLLM_ROUTER,
)
from components.dev.hub import Hub, HubArgs
from components.dev.object_store import ObjectStore, ObjectStoreArgs
from components.platform.crds import Crds, CrdsArgs
from components.platform.lws import LeaderWorkerSets, LeaderWorkerSetsArgs
from components.platform.namespaces import Namespace, NamespaceArgs
from components.platform.network_policies import NetworkPolicies, NetworkPoliciesArgs
from components.platform.sources import chart_source, crd_files
from components.serving.checks.job import CheckJob, CheckJobArgs
from components.serving.engine_deployment import EngineDeployment, EngineDeploymentArgs
from components.serving.engine_group import EngineGroup, EngineGroupArgs
from components.serving.router import Router, RouterArgs
from components.serving.routers import Backend, EndpointPicker, VllmRouter
from components.serving.simulator import simulator
from components.weights.program import Installed, Limits, Prepared, Store
from components.weights.staging.manifest import Source
from components.weights.staging_job import StagingJob, StagingJobArgs
from planning import dev
from planning.dev import DevPlan, Workload, plan_dev
from planning.findings import Finding, Severity
from planning.settings.dev import Dev

HUB_PROGRAM = Path("sandbox/hub/hub.py")
"""Runs in the cluster, as text in a ConfigMap; nothing of it is imported."""


def build(settings: Dev) -> Mapping[str, Any]:
    """The environment; returns the stack's outputs."""
    plan = plan_dev(settings)
    mirror, bundle = settings.artifacts.mirror, settings.artifacts.bundle
    python = PYTHON.at(mirror)
    opts = pulumi.ResourceOptions(provider=_provider(settings))

    # Platform: namespaces in which nothing is allowed, then the flows that are; kinds, then their controller.
    names = (plan.serving_namespace, plan.weights_namespace, dev.LWS_NAMESPACE)
    quotas = (plan.quota, None, None)
    namespaces = [
        Namespace(name, args=NamespaceArgs(name=name, quota=quota), opts=opts)
        for name, quota in zip(names, quotas, strict=True)
    ]
    inside = _after(opts, *(namespace.ready for namespace in namespaces))
    flows = NetworkPolicies("flows", args=NetworkPoliciesArgs(flows=plan.flows, namespaces=names), opts=inside)
    inside = _after(inside, flows.ready)
    kinds = Crds(
        "inference-extension", args=CrdsArgs(files=crd_files(INFERENCE_EXTENSION_CRDS, bundle=bundle)), opts=opts
    )
    Crds("gateway-api", args=CrdsArgs(files=crd_files(GATEWAY_API_CRDS, bundle=bundle)), opts=opts)
    groups = LeaderWorkerSets(
        "lws",
        args=LeaderWorkerSetsArgs(
            source=chart_source(LWS_CHART, bundle=bundle),
            namespace=dev.LWS_NAMESPACE,
            image=LWS_MANAGER.at(mirror),
            cpu_millicores=20,
            memory_mib=256,
        ),
        opts=inside,
    )

    # Weights: from the hub into the store, verified.
    hub = Hub(
        "hub",
        args=HubArgs(
            namespace=plan.weights_namespace,
            labels=dev.HUB_LABELS,
            program=HUB_PROGRAM.read_text(encoding="utf-8"),
            image=python,
            port=dev.HUB_PORT,
            blob_port=dev.HUB_BLOB_PORT,
            ready_seconds=settings.ready_seconds,
        ),
        opts=inside,
    )
    store = ObjectStore(
        "store",
        args=ObjectStoreArgs(
            namespace=plan.weights_namespace,
            labels=dev.STORE_LABELS,
            bucket="weights",
            image=OBJECT_STORE.at(mirror),
            helper_image=python,
            port=dev.STORE_PORT,
            size="1Gi",
            ready_seconds=settings.ready_seconds,
        ),
        opts=inside,
    )
    weights = StagingJob(
        "staging",
        args=StagingJobArgs(
            namespace=plan.weights_namespace,
            labels=dev.STAGING_LABELS,
            sources=(Source(repo=plan.repo, revision=plan.revision),),
            store=Store(url=store.url, environment=store.environment, credentials=store.credentials),
            runtime=Prepared(image=python) if settings.staging_packages == "in-image" else Installed(image=python),
            service_account="staging",
            hub=hub.address,
            limits=Limits(cpu="50m", memory_mib=64, parallel_files=2, connections=4),
            seconds=plan.stage_seconds,
            check_seconds=plan.stage_seconds,
            check="full",
        ),
        opts=_after(inside, hub.ready, store.ready),
    )

    # Engines, once the weights are verified: both shapes of the guide.
    serving = _after(inside, [weights.checked])
    image = SIMULATOR.at(mirror)
    unified = EngineDeployment(
        dev.UNIFIED,
        args=EngineDeploymentArgs(
            namespace=plan.serving_namespace,
            replicas=plan.unified.group.replicas,
            selector=plan.unified.labels,
            pod=simulator(plan.unified, image=image, leader=True),
            ready_seconds=plan.unified.ready_seconds,
        ),
        opts=serving,
    )
    apart = [
        EngineGroup(role.role, args=_group(role, plan=plan, image=image), opts=_after(serving, groups.ready))
        for role in (plan.prefill, plan.decode)
    ]

    # Routers, and through each of them the proof that it serves.
    picker = EndpointPicker(plan=plan.picker, picker_image=ENDPOINT_PICKER.at(mirror), envoy_image=ENVOY.at(mirror))
    splitter = VllmRouter(plan=plan.split, image=VLLM_ROUTER.at(mirror))
    routers = {
        dev.UNIFIED_SHAPE: _router(
            dev.UNIFIED_SHAPE, picker, plan=plan, opts=_after(inside, unified.ready, kinds.ready)
        ),
        dev.DISAGGREGATED_SHAPE: _router(
            dev.DISAGGREGATED_SHAPE, splitter, plan=plan, opts=_after(inside, *(group.ready for group in apart))
        ),
    }
    checks = [
        _smoke(shape, router, plan=plan, image=python, opts=_after(inside, router.ready))
        for shape, router in routers.items()
    ]
    return {
        "endpoints": {shape: router.endpoint for shape, router in routers.items()},
        "forwards": {
            shape: f"kubectl --namespace {plan.serving_namespace} port-forward service/{_router_name(shape)} "
            f"{dev.ROUTER_PORT}:{dev.ROUTER_PORT}"
            for shape in routers
        },
        "model": plan.model,
        "smoke": pulumi.Output.all(*(check.job.id for check in checks)).apply(
            lambda _: f"passed: {', '.join(dev.SMOKE_CHECKS)} through each of {', '.join(routers)}"
        ),
        "plan": plan.summary(),
    }


def _provider(settings: Dev) -> k8s.Provider:
    """The cluster; another one means other objects."""
    kubeconfig = _kubeconfig(settings)
    return k8s.Provider(
        "cluster",
        kubeconfig=kubeconfig,
        context=settings.kubernetes.context,
        cluster_identifier=f"{kubeconfig}#{settings.kubernetes.context or ''}",
        upsert_existing_objects=settings.adopt,
        # What a killed `up` made was made under other field managers' names.
        enable_patch_force=settings.adopt,
        enable_server_side_apply=True,
    )


def _kubeconfig(settings: Dev) -> str:
    return settings.kubernetes.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def missing(settings: Dev) -> list[Finding]:
    """What this machine lacks for a real run; a rendering needs none of it."""
    path = _kubeconfig(settings)
    if Path(path).is_file():
        return []
    return [
        Finding(
            rule="dev-kubeconfig",
            severity=Severity.ERROR,
            what="there is no kubeconfig",
            value=path,
            why="it says which cluster this environment is for",
            remedy="Start the embedded cluster (`make up` does), or set kubernetes.kubeconfig or KUBECONFIG to one file",
            source="stacks.dev",
        )
    ]


def _after(opts: pulumi.ResourceOptions, *needed: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(depends_on=[resource for each in needed for resource in each])
    )


def _group(role: Workload, *, plan: DevPlan, image: str) -> EngineGroupArgs:
    return EngineGroupArgs(
        namespace=plan.serving_namespace,
        groups=role.group.replicas,
        pods=role.group.pods,
        leader=simulator(role, image=image, leader=True),
        worker=simulator(role, image=image, leader=False),
        labels=role.labels,
        ready_seconds=role.ready_seconds,
    )


def _router(shape: str, backend: Backend, *, plan: DevPlan, opts: pulumi.ResourceOptions) -> Router:
    return Router(
        _router_name(shape),
        args=RouterArgs(
            namespace=plan.serving_namespace,
            backend=backend,
            labels=dev.router_labels(shape),
            port=dev.ROUTER_PORT,
            cpu_millicores=dev.ROUTER_CPU_MILLICORES,
            memory_mib=dev.ROUTER_MEMORY_MIB,
            grace_seconds=dev.GRACE_SECONDS,
            ready_seconds=plan.smoke_seconds,
        ),
        opts=opts,
    )


def _router_name(shape: str) -> str:
    return f"{shape}-router"


def _smoke(shape: str, router: Router, *, plan: DevPlan, image: str, opts: pulumi.ResourceOptions) -> CheckJob:
    return CheckJob(
        f"smoke-{shape}",
        args=CheckJobArgs(
            namespace=plan.serving_namespace,
            program="smoke",
            image=image,
            environment={
                "BASE_URL": router.endpoint,
                "MODEL": plan.model,
                "CHECKS": ",".join(dev.SMOKE_CHECKS),
                "WAIT_SECONDS": str(dev.SMOKE_WAIT_SECONDS),
                "TIMEOUT_SECONDS": str(dev.SMOKE_WAIT_SECONDS),
            },
            seconds=plan.smoke_seconds,
            labels=dev.SMOKE_LABELS,
            cpu_millicores=dev.SMOKE_CPU_MILLICORES,
            memory_mib=dev.SMOKE_MEMORY_MIB,
            # Whatever changes the engines or the router is proved anew.
            changes_with=(plan.model_dump_json(),),
        ),
        opts=opts,
    )
