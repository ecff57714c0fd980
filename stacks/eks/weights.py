"""Hub → bucket → engines: from settings and plan to the components' arguments."""

from __future__ import annotations

import pulumi

from catalog.artifacts import PYTHON
from components.aws.file_systems import ElasticFileSystem, Lustre
from components.aws.user_data import INSTANCE_STORE_MOUNT
from components.serving.sglang import NodeDisk, SharedVolume, Weights
from components.weights.node_copy import NodeCopyArgs
from components.weights.program import Installed, Limits, SecretKey, Store
from components.weights.staging.manifest import Source
from components.weights.staging_job import StagingJobArgs
from components.weights.static_volume import StaticVolumeArgs
from components.weights.volume_job import VolumeJobArgs
from planning.plan import Plan
from planning.settings.eks import (
    EksB300,
    FsxWeights,
    NvmeWeights,
)
from stacks.eks.names import (
    ACCELERATORS,
    CLAIM,
    GPU_TOLERATION,
    HYDRATION,
    HYDRATION_LABELS,
    NODE_WEIGHTS,
    SERVING,
    STAGING,
    STAGING_LABELS,
    SYSTEM,
    WEIGHTS,
    has_started,
    image,
)

POD_IDENTITY_AGENT = "169.254.170.23"
"""Link-local address at which a node hands pods their AWS credentials (EKS guide, pod-id-how-it-works)."""


def sources(planned: Plan) -> tuple[Source, ...]:
    """What is staged."""
    return (Source(repo=planned.weights.repo, revision=planned.weights.revision),)


def runtime(settings: EksB300) -> Installed:
    """How the staging program gets its packages: a plain Python image and an install that checks hashes."""
    return Installed(image=image(PYTHON, settings), index_url=settings.weights.staging.package_index)


def _store(settings: EksB300, url: pulumi.Input[str]) -> Store:
    return Store(url=url, environment={"AWS_REGION": settings.region})


def staging(settings: EksB300, planned: Plan, *, url: pulumi.Input[str]) -> StagingJobArgs:
    """Hub → bucket, on CPU nodes."""
    token = settings.weights.staging.token
    return StagingJobArgs(
        namespace=WEIGHTS,
        labels=STAGING_LABELS,
        sources=sources(planned),
        store=_store(settings, url),
        runtime=runtime(settings),
        service_account=STAGING,
        token=SecretKey(name=token.name, key=token.key) if token else None,
        environment=_proxy(settings.weights.staging.proxy),
        limits=Limits(parallel_files=planned.weights.parallel_files, connections=2 * planned.weights.parallel_files),
        seconds=planned.weights.stage_seconds,
        node_selector=SYSTEM,
    )


def _proxy(address: str | None) -> dict[str, pulumi.Input[str]]:
    """Variables that send the hub's requests through a proxy; S3 and the node's credentials agent are asked directly."""
    if address is None:
        return {}
    return {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": f".amazonaws.com,{POD_IDENTITY_AGENT}"}


def node_copy(settings: EksB300, planned: Plan, *, url: pulumi.Input[str]) -> NodeCopyArgs:
    """Bucket → every accelerator node's array."""
    return NodeCopyArgs(
        namespace=WEIGHTS,
        labels=HYDRATION_LABELS,
        sources=sources(planned),
        store=_store(settings, url),
        runtime=runtime(settings),
        service_account=HYDRATION,
        disk=INSTANCE_STORE_MOUNT,
        folder=NODE_WEIGHTS,
        seconds=planned.weights.hydrate_seconds if has_started(planned) else None,
        node_selector=ACCELERATORS,
        tolerations=(GPU_TOLERATION,),
    )


def copy_namespace(settings: EksB300) -> str:
    """Where the copy to the engines' store runs: beside the claim that it fills, or apart when it fills nodes' disks."""
    return WEIGHTS if isinstance(settings.weights, NvmeWeights) else SERVING


def lustre_volume(wanted: FsxWeights, system: Lustre) -> StaticVolumeArgs:
    """FSx for Lustre as a claim."""
    return StaticVolumeArgs(
        namespace=SERVING,
        claim=CLAIM,
        driver="fsx.csi.aws.com",
        handle=system.file_system_id,
        attributes={"dnsname": system.dns_name, "mountname": system.mount_name},
        mount_options=("flock",),
        gib=wanted.storage_gib,
    )


def elastic_volume(system: ElasticFileSystem, planned: Plan) -> StaticVolumeArgs:
    """EFS as a claim; the file system has no size, the claim must name one."""
    return StaticVolumeArgs(
        namespace=SERVING,
        claim=CLAIM,
        driver="efs.csi.aws.com",
        handle=system.file_system_id,
        gib=-(-planned.weights.checkpoint_bytes // 2**30),
    )


def volume_job(settings: EksB300, planned: Plan, *, url: pulumi.Input[str]) -> VolumeJobArgs:
    """Fills EFS from the bucket; reads every byte of FSx once, which brings it in from the bucket and verifies it."""
    linked = isinstance(settings.weights, FsxWeights)
    return VolumeJobArgs(
        namespace=SERVING,
        labels=HYDRATION_LABELS,
        sources=sources(planned),
        store=_store(settings, url),
        runtime=runtime(settings),
        claim=CLAIM,
        work="verify" if linked else "hydrate",
        service_account=None if linked else HYDRATION,
        seconds=planned.weights.hydrate_seconds,
        node_selector=SYSTEM,
    )


def mounted(planned: Plan, *, store: NodeDisk | SharedVolume) -> Weights:
    """The verified copy as the engine sees it."""
    inside = f"{NODE_WEIGHTS}/" if isinstance(store, NodeDisk) else ""
    return Weights(
        store=store,
        directory=f"{inside}{planned.weights.prefix}",
        repo=planned.weights.repo,
        revision=planned.weights.revision,
    )
