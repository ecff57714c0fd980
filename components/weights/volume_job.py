"""Bucket → a volume that all nodes share, or the verification of a volume that fills itself from the bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi

from components.weights.jobs import job
from components.weights.program import (
    Limits,
    Runtime,
    Store,
    container,
    pod,
    program_config_map,
    sources_json,
    store_environment,
    variables,
)
from components.weights.staging.manifest import Source

VOLUME_MOUNT = "/volume"


@dataclass(frozen=True, kw_only=True)
class VolumeJobArgs:
    """What happens to which volume.

    claim: name of its PersistentVolumeClaim. folder: below the volume's root. work: `hydrate` copies from the store; `verify` reads and
    hashes every byte that is there, which also fetches what a linked file system loads on first use.
    service_account: one that exists and may read the bucket. seconds: how long it may take, from the plan.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    sources: Sequence[Source]
    store: Store
    runtime: Runtime
    claim: str
    folder: str = ""
    work: Literal["hydrate", "verify"]
    service_account: str | None = None
    limits: Limits = field(default_factory=lambda: Limits(cpu="4", memory_mib=2048, parallel_files=24, connections=48))
    seconds: int
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()


class VolumeJob(pulumi.ComponentResource):
    """A Job, awaited, after which the volume holds the verified copy.

    done: the Job.
    """

    def __init__(self, name: str, *, args: VolumeJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:weights:VolumeJob", name, {}, opts)
        program = program_config_map(
            f"{name}-program",
            namespace=args.namespace,
            labels=args.labels,
            opts=pulumi.ResourceOptions(parent=self),
        )
        command = ("hydrate",) if args.work == "hydrate" else ("verify", "--full")
        made = container(
            args.work,
            runtime=args.runtime,
            arguments=command,
            environment=[
                *store_environment(args.store),
                *variables(
                    {
                        "STAGING_SOURCES": sources_json(args.sources),
                        "STAGING_DIRECTORY": f"{VOLUME_MOUNT}/{args.folder}".rstrip("/"),
                    }
                ),
            ],
            limits=args.limits,
            credentials=args.store.credentials,
            mounts=[{"name": "volume", "mountPath": VOLUME_MOUNT, "readOnly": args.work == "verify"}],
            root=True,
        )
        claim = {"claimName": args.claim, "readOnly": args.work == "verify"}
        self.done = job(
            name,
            namespace=args.namespace,
            labels=args.labels,
            pod=pod(
                runtime=args.runtime,
                config_map=f"{name}-program",
                containers=[made],
                service_account=args.service_account,
                node_selector=args.node_selector,
                tolerations=args.tolerations,
                restart="Never",
                more_volumes=[{"name": "volume", "persistentVolumeClaim": claim}],
            ),
            main=args.work,
            seconds=args.seconds,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[program]),
        )
        self.register_outputs({})
