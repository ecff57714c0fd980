"""Bucket → the disks of each accelerator node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.weights.program import (
    Limits,
    Runtime,
    Store,
    container,
    pod,
    program_config_map,
    program_digest,
    sources_json,
    store_environment,
    variables,
)
from components.weights.staging.manifest import Source

NODE_MOUNT = "/node"
CHECK_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class NodeCopyArgs:
    """What is copied to which nodes.

    store.url: pass StagingJob.verified, so that nothing is copied before it is verified. disk: mount of the node's array; a node
    without it gets no pod. folder: below it. service_account: made here; reads the bucket. seconds: how long `up` waits for the
    nodes that are there, from the plan; None: it does not wait, because no node exists yet.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    sources: Sequence[Source]
    store: Store
    runtime: Runtime
    service_account: str
    service_account_annotations: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    disk: str
    folder: str
    limits: Limits = field(default_factory=lambda: Limits(cpu="4", memory_mib=2048, parallel_files=24, connections=48))
    seconds: int | None
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, Any]] = ()


class NodeCopy(pulumi.ComponentResource):
    """A DaemonSet that fills each node's disks from the bucket, hashing every byte again, and stays to answer for it.

    A pod is ready when its node has the whole copy. A new revision is copied beside the old one, which stays until `remove`.
    Engines do not rely on the order of pods: each waits for its own node's copy (gate_container).

    copied: the DaemonSet.
    """

    def __init__(self, name: str, *, args: NodeCopyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:weights:NodeCopy", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        program = program_config_map(f"{name}-program", namespace=args.namespace, labels=args.labels, opts=child)
        metadata = {"namespace": args.namespace, "labels": dict(args.labels)}
        account = k8s.core.v1.ServiceAccount(
            name,
            metadata={
                **metadata,
                "name": args.service_account,
                "annotations": dict(args.service_account_annotations),
            },
            automount_service_account_token=False,
            opts=child,
        )
        skip = {} if args.seconds is not None else {"annotations": {"pulumi.com/skipAwait": "true"}}
        timeout = f"{args.seconds or 600}s"
        self.copied = k8s.apps.v1.DaemonSet(
            name,
            metadata={**metadata, "name": name, **skip},
            spec={
                "selector": {"matchLabels": dict(args.labels)},
                # Old copies stay on the disks while pods change: nodes may change all at once.
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
                "template": {
                    "metadata": {
                        "labels": dict(args.labels),
                        "annotations": {"checksum/program": program_digest()},
                    },
                    "spec": node_pod(args, config_map=f"{name}-program"),
                },
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[program, account],
                custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout),
            ),
        )
        self.register_outputs({})


def node_pod(args: NodeCopyArgs, *, config_map: str) -> dict[str, Any]:
    """The pod of one node."""
    made = container(
        "hydrate",
        runtime=args.runtime,
        arguments=("hydrate", "--stay"),
        environment=[
            *store_environment(args.store),
            *variables(
                {
                    "STAGING_SOURCES": sources_json(args.sources),
                    "STAGING_DIRECTORY": f"{NODE_MOUNT}/{args.folder}",
                }
            ),
        ],
        limits=args.limits,
        credentials=args.store.credentials,
        mounts=[{"name": "node", "mountPath": NODE_MOUNT}],
        root=True,
    )
    made["readinessProbe"] = {
        "exec": {"command": ["python3", "-m", "staging", "verify"]},
        "periodSeconds": CHECK_SECONDS,
        "timeoutSeconds": CHECK_SECONDS,
        "failureThreshold": 1,
    }
    return pod(
        runtime=args.runtime,
        config_map=config_map,
        containers=[made],
        service_account=args.service_account,
        node_selector=args.node_selector,
        tolerations=args.tolerations,
        restart="Always",
        # `Directory`, not `DirectoryOrCreate`: without the array the latter would fill the small root volume.
        more_volumes=[{"name": "node", "hostPath": {"path": args.disk, "type": "Directory"}}],
    )
