"""EKS with p6-b300.48xlarge from an EC2 Capacity Block; SGLang, one replica a node.

Read from top to bottom: nothing that is billed by the accelerator-hour is made before the weights are staged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from catalog.artifacts import INFERENCE_EXTENSION_CRDS
from components.aws.accelerators import AcceleratorPool
from components.aws.addons import AFTER_NODES, BEFORE_NODES, Addons
from components.aws.bucket import WeightsBucket, WeightsBucketArgs
from components.aws.capacity_block import look_up
from components.aws.cluster import Cluster
from components.aws.documents import read_bucket, write_bucket
from components.aws.entrance import Entrance
from components.aws.file_systems import ElasticFileSystem, Lustre
from components.aws.identity import PodRole
from components.aws.monitoring import ManagedPrometheus
from components.aws.network import Network
from components.aws.nodes import NodeRole, SystemNodes
from components.aws.pulumi_eks_cluster import PulumiEksCluster
from components.aws.user_data import INSTANCE_STORE_MOUNT
from components.platform.crds import Crds, CrdsArgs
from components.platform.gpu import GpuSoftware
from components.platform.monitoring import sglang_dashboard
from components.platform.namespaces import Namespace
from components.platform.network_policies import NetworkPolicies, NetworkPoliciesArgs
from components.platform.prometheus import Dashboards, Prometheus
from components.platform.sources import crd_files
from components.serving.checks.job import CheckJob
from components.serving.gateway import Gateway
from components.serving.router import Router
from components.serving.sglang import NodeDisk, Sglang, SharedVolume
from components.weights.node_copy import NodeCopy
from components.weights.staging_job import StagingJob
from components.weights.static_volume import StaticVolume
from components.weights.volume_job import VolumeJob
from planning.plan import Plan, plan
from planning.report import brief, output
from planning.settings.eks import EksB300, FsxWeights, NoProof, NvmeWeights, PrometheusMonitoring
from stacks.eks import hardware, monitoring, names, serving, weights
from stacks.eks.flows import flows

CSI_ADDONS = {"nvme": (), "fsx": ("aws-fsx-csi-driver",), "efs": ("aws-efs-csi-driver",)}
"""Add-ons that a way of holding the weights needs, beside those of every cluster."""


def build(settings: EksB300) -> Mapping[str, Any]:
    """The environment; returns the stack's outputs. Raises ConfigurationError before anything is made."""
    tags = {"llm-serving/stack": pulumi.get_stack(), **settings.tags}
    provider = aws.Provider("aws", region=settings.region, default_tags={"tags": tags})
    planned = plan(settings, block=look_up(settings.capacity_block.reservation, provider=provider))
    planned.refuse_errors()
    pulumi.log.info(brief(planned))

    ground = _ground(settings, provider)
    inside = _inside(settings, planned, ground)
    staged = _staged(settings, planned, ground, inside)
    pool = _accelerators(settings, planned, ground, after=[inside.gpus, *staged.ready])
    engine = _engine(settings, planned, inside, staged, pool)
    front = _front(settings, planned, ground, inside)
    proof = _proof(settings, planned, inside, engine, front)
    _monitoring(settings, planned, ground, inside)
    return {
        "cluster": ground.cluster.cluster_name,
        "endpoint": front.endpoint,
        "model": planned.model,
        "proof": proof,
        "bucket": staged.bucket.bucket,
        "block": names.calendar(planned),
        "plan": output(planned),
    }


# Network, control plane, system nodes


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What stands before Kubernetes objects can be made. opts: of every AWS resource. ready: a cluster that runs Deployments."""

    network: Network
    cluster: Cluster | PulumiEksCluster
    role: NodeRole
    system: SystemNodes
    ready: list[pulumi.Resource]
    opts: pulumi.ResourceOptions


def _ground(settings: EksB300, provider: aws.Provider) -> Ground:
    opts = pulumi.ResourceOptions(provider=provider)
    network = Network("network", args=hardware.network(settings), opts=opts)
    account = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(provider=provider)).account_id
    control_plane = Cluster if settings.cluster.control_plane == "aws" else PulumiEksCluster
    cluster = control_plane("cluster", args=hardware.cluster(settings, net=network, account=account), opts=opts)
    first = Addons(
        "node-addons",
        args=hardware.addons(settings, cluster_name=cluster.cluster_name, names=BEFORE_NODES),
        opts=opts,
    )
    role = NodeRole("node", partition=hardware.partition(settings), opts=opts)
    system = SystemNodes(
        "system",
        args=hardware.system_nodes(settings, net=network, cluster_name=cluster.cluster_name, role=role),
        opts=_after(opts, *first.addons.values()),
    )
    rest = Addons(
        "addons",
        args=hardware.addons(
            settings,
            cluster_name=cluster.cluster_name,
            names=(*AFTER_NODES, *CSI_ADDONS[settings.weights.store]),
        ),
        opts=_after(opts, system.node_group),
    )
    ready = [system.node_group, *rest.addons.values()]
    return Ground(network=network, cluster=cluster, role=role, system=system, ready=ready, opts=opts)


def _after(opts: pulumi.ResourceOptions, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(resources)))


# Inside the cluster


@dataclass(frozen=True, kw_only=True)
class Inside:
    """The way into the cluster. goes_with_cluster: options of objects that need no deletion of their own when the cluster goes.

    lasting: options of objects that hold something outside (a disk), and so must be deleted one by one. Both wait for the
    restrictions that pods run under. kinds: definitions of the inference extension.
    """

    goes_with_cluster: pulumi.ResourceOptions
    lasting: pulumi.ResourceOptions
    gpus: GpuSoftware
    kinds: list[pulumi.Resource]


def _inside(settings: EksB300, planned: Plan, ground: Ground) -> Inside:
    kubernetes = k8s.Provider(
        "kubernetes",
        kubeconfig=ground.cluster.kubeconfig,
        # Without it a changed kubeconfig would look like another cluster and replace every object.
        cluster_identifier=settings.cluster.name,
        opts=pulumi.ResourceOptions(depends_on=ground.ready),
    )
    gone = ground.cluster.eks if isinstance(ground.cluster, Cluster) else None
    going = pulumi.ResourceOptions(provider=kubernetes, deleted_with=gone)
    spaces = [Namespace(args.name, args=args, opts=going) for args in names.NAMESPACES]
    restricted = [resource for space in spaces for resource in space.ready]
    gpus = GpuSoftware("gpus", args=serving.gpu_software(settings), opts=going)
    allowed = NetworkPolicies(
        "flows",
        args=NetworkPoliciesArgs(
            flows=flows(settings, planned), namespaces=tuple(args.name for args in names.NAMESPACES)
        ),
        opts=_after(going, *restricted, gpus.namespace_made),
    )
    kinds = Crds(
        "inference-extension",
        args=CrdsArgs(files=crd_files(INFERENCE_EXTENSION_CRDS, bundle=settings.artifacts.bundle)),
        opts=going,
    )
    ready = [*restricted, *allowed.ready]
    return Inside(
        goes_with_cluster=_after(going, *ready),
        lasting=_after(pulumi.ResourceOptions(provider=kubernetes), *ready),
        gpus=gpus,
        kinds=kinds.ready,
    )


# Weights: hub → bucket (→ shared file system), before any accelerator


@dataclass(frozen=True, kw_only=True)
class StagedWeights:
    """The bucket with its verified copy. store: how engines get at it. readers: rights of what copies onto nodes.

    url: of the copy. ready: that it is verified (and in a shared store, where there is one); what uses it waits for this.
    """

    bucket: WeightsBucket
    url: pulumi.Output[str]
    store: NodeDisk | SharedVolume
    readers: PodRole
    ready: list[pulumi.Resource]


def _staged(settings: EksB300, planned: Plan, ground: Ground, inside: Inside) -> StagedWeights:
    key = settings.weights.kms_key
    bucket = WeightsBucket(
        "weights",
        args=WeightsBucketArgs(name=settings.weights.bucket, kms_key=key, keep=settings.weights.keep),
        opts=ground.opts,
    )
    writer, reader = (
        PodRole(
            name,
            args=hardware.pod_role(
                settings,
                account=name,
                cluster_name=ground.cluster.cluster_name,
                policy=bucket.arn.apply(partial(policy, kms_key=key)),
            ),
            opts=ground.opts,
        )
        for name, policy in ((names.STAGING, write_bucket), (names.HYDRATION, read_bucket))
    )
    # The address is not taken from the Job that verifies it: that Job is replaced by deleting it first, and Pulumi would then
    # delete whatever has a property from it as well. What uses the copy depends on the Job instead.
    url = pulumi.Output.format("s3://{0}", bucket.bucket)
    staging = StagingJob(
        names.STAGING,
        args=weights.staging(settings, planned, url=url),
        opts=_after(inside.goes_with_cluster, bucket.ready, *writer.ready, *ground.ready),
    )
    store, ready = _shared(settings, planned, ground, inside, bucket, staging, reader)
    return StagedWeights(bucket=bucket, url=url, store=store, readers=reader, ready=[staging.checked, *ready])


def _shared(
    settings: EksB300,
    planned: Plan,
    ground: Ground,
    inside: Inside,
    bucket: WeightsBucket,
    staging: StagingJob,
    reader: PodRole,
) -> tuple[NodeDisk | SharedVolume, list[pulumi.Resource]]:
    """Where engines read from: each node's own disks, or a file system that is filled (EFS) or warmed (FSx) here."""
    if isinstance(settings.weights, NvmeWeights):
        return NodeDisk(mount=INSTANCE_STORE_MOUNT), []
    nodes = ground.cluster.security_group_id
    if isinstance(settings.weights, FsxWeights):
        lustre = Lustre(
            "lustre",
            args=hardware.lustre(
                settings, settings.weights, planned, net=ground.network, nodes=nodes, bucket=bucket.bucket
            ),
            opts=_after(ground.opts, staging.checked),
        )
        volume = weights.lustre_volume(settings.weights, lustre)
        needed: list[pulumi.Resource] = [lustre.linked]
    else:
        elastic = ElasticFileSystem(
            "cache", args=hardware.elastic_file_system(net=ground.network, nodes=nodes), opts=ground.opts
        )
        volume = weights.elastic_volume(elastic, planned)
        account = k8s.core.v1.ServiceAccount(
            names.HYDRATION,
            metadata={"name": names.HYDRATION, "namespace": names.SERVING},
            automount_service_account_token=False,
            opts=inside.goes_with_cluster,
        )
        needed = [*elastic.mounted, account]
    claimed = StaticVolume("weights-volume", args=volume, opts=_after(inside.goes_with_cluster, *needed))
    filled = VolumeJob(
        "weights-volume",
        args=weights.volume_job(settings, planned, url=pulumi.Output.format("s3://{0}", bucket.bucket)),
        opts=_after(inside.goes_with_cluster, staging.checked, claimed.claim, *needed, *reader.ready),
    )
    return SharedVolume(claim=names.CLAIM), [filled.done]


# Accelerators


def _accelerators(settings: EksB300, planned: Plan, ground: Ground, *, after: list[pulumi.Resource]) -> AcceleratorPool:
    cluster = ground.cluster
    return AcceleratorPool(
        "accelerators",
        args=hardware.accelerators(
            settings,
            planned,
            net=ground.network,
            cluster_name=cluster.cluster_name,
            security_group=cluster.security_group_id,
            role=ground.role,
        ),
        opts=_after(ground.opts, *ground.ready, *after),
    )


# Engines


def _engine(settings: EksB300, planned: Plan, inside: Inside, staged: StagedWeights, pool: AcceleratorPool) -> Sglang:
    needed: list[pulumi.Resource] = [pool.node_group, inside.gpus.allocator, *staged.ready]
    if isinstance(staged.store, NodeDisk):
        copy = NodeCopy(
            names.HYDRATION,
            args=weights.node_copy(settings, planned, url=staged.url),
            opts=_after(inside.goes_with_cluster, pool.node_group, *staged.ready, *staged.readers.ready),
        )
        needed.append(copy.copied)
    return Sglang(
        planned.engine.role,
        args=serving.engine(settings, planned, store=staged.store),
        opts=_after(inside.goes_with_cluster, *needed),
    )


# The way in


@dataclass(frozen=True, kw_only=True)
class Front:
    """Router, gateway and load balancer. router: its address inside the cluster. endpoint: for clients."""

    router: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    ready: list[pulumi.Resource]


def _front(settings: EksB300, planned: Plan, ground: Ground, inside: Inside) -> Front:
    router = Router(
        "router",
        args=serving.router(settings, planned),
        opts=_after(inside.goes_with_cluster, *ground.ready, *inside.kinds),
    )
    gateway = Gateway(
        "gateway",
        args=serving.gateway(settings, upstream="router"),
        opts=_after(inside.goes_with_cluster, *router.ready),
    )
    entrance = Entrance(
        "entrance",
        args=hardware.entrance(
            settings,
            net=ground.network,
            nodes=ground.cluster.security_group_id,
            autoscaling_group=ground.system.autoscaling_group,
        ),
        opts=ground.opts,
    )
    return Front(router=router.endpoint, endpoint=entrance.url, ready=[*router.ready, gateway.ready, entrance.ready])


# Proof


def _proof(settings: EksB300, planned: Plan, inside: Inside, engine: Sglang, front: Front) -> Mapping[str, Any]:
    """The smoke check's result for the outputs: passed (else `up` has failed by now), or not run and why."""
    if isinstance(settings.proof, NoProof):
        return {"result": "not run", "why": settings.proof.reason}
    if not names.has_started(planned):
        _, schedule = names.known_block(planned)
        return {
            "result": "not run",
            "why": f"the block starts at {schedule.start:%Y-%m-%d %H:%M} UTC; run `up` again then",
        }
    smoke = CheckJob(
        "smoke",
        args=serving.smoke(settings, planned, base_url=front.router, engines=engine.service),
        opts=_after(inside.goes_with_cluster, engine.deployment, *front.ready),
    )
    return {"result": smoke.job.id.apply(lambda _: "passed"), "checks": list(names.SMOKE_CHECKS)}


# Monitoring


def _monitoring(settings: EksB300, planned: Plan, ground: Ground, inside: Inside) -> None:
    wanted = settings.monitoring
    if isinstance(wanted, PrometheusMonitoring):
        Prometheus(
            "prometheus",
            args=monitoring.prometheus(settings, wanted, planned),
            opts=_after(inside.lasting, inside.gpus.namespace_made),
        )
    else:
        ManagedPrometheus(
            "prometheus",
            args=monitoring.managed_prometheus(
                settings,
                wanted,
                planned,
                net=ground.network,
                cluster_arn=ground.cluster.arn,
                security_group=ground.cluster.security_group_id,
            ),
            opts=_after(ground.opts, *ground.ready),
        )
    Dashboards(
        "dashboards",
        namespace=names.MONITORING,
        dashboards={"sglang": sglang_dashboard(job=names.ENGINE_JOB)},
        opts=inside.goes_with_cluster,
    )
