"""Hub → bucket, before any accelerator exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as k8s

from components.weights.jobs import job
from components.weights.program import (
    Limits,
    Runtime,
    SecretKey,
    Store,
    container,
    pod,
    program_config_map,
    secret_variable,
    sources_json,
    store_environment,
    variables,
)
from components.weights.staging.manifest import Source


@dataclass(frozen=True, kw_only=True)
class StagingJobArgs:
    """What is staged and how.

    sources: model, drafter, each at a commit. service_account: made here, with these annotations; the cloud's identity is bound to it
    by name, or by the annotations. hub: address of the hub, unset for the public one; token: for gated and private repositories.
    environment: more variables, such as proxies. seconds: how long staging may take; from the plan. check: how the finished copy
    is verified before anything uses it: by size and tag (every byte was hashed on its way in), or by reading it all again,
    which may take check_seconds.
    """

    namespace: pulumi.Input[str]
    labels: Mapping[str, str]
    sources: Sequence[Source]
    store: Store
    runtime: Runtime
    service_account: str
    service_account_annotations: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    hub: str | None = None
    token: SecretKey | None = None
    environment: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seconds: int
    check: Literal["quick", "full"] = "quick"
    check_seconds: int = 900
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()


class StagingJob(pulumi.ComponentResource):
    """A Job that copies the weights from the hub into the bucket, and a second one that verifies the finished copy.

    Only the first has the hub's token. Both are awaited: `up` does not go on without a verified copy.

    verified: the store's address, known only once the copy is verified; what reads the copy takes it from here.
    checked: the verifying Job, for depends_on.
    """

    def __init__(self, name: str, *, args: StagingJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:weights:StagingJob", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        program = program_config_map(f"{name}-program", namespace=args.namespace, labels=args.labels, opts=child)
        account = k8s.core.v1.ServiceAccount(
            name,
            metadata={
                "name": args.service_account,
                "namespace": args.namespace,
                "labels": dict(args.labels),
                "annotations": dict(args.service_account_annotations),
            },
            automount_service_account_token=False,
            opts=child,
        )
        environment = [
            *store_environment(args.store),
            *variables({"STAGING_SOURCES": sources_json(args.sources), **args.environment}),
        ]
        hub = variables({"HF_ENDPOINT": args.hub}) if args.hub else []
        token = [secret_variable("HF_TOKEN", args.token)] if args.token else []
        staged = self._job(
            name,
            args=args,
            command=("stage",),
            environment=[*environment, *hub, *token],
            seconds=args.seconds,
            after=[program, account],
        )
        self.checked = self._job(
            f"{name}-verify",
            args=args,
            command=("verify", f"--{args.check}"),
            environment=environment,
            seconds=args.check_seconds,
            after=[staged],
        )
        self.verified: pulumi.Output[str] = pulumi.Output.all(args.store.url, self.checked.id).apply(
            lambda found: str(found[0])
        )
        self.register_outputs({"verified": self.verified})

    def _job(
        self,
        name: str,
        *,
        args: StagingJobArgs,
        command: tuple[str, ...],
        environment: Sequence[Mapping[str, Any]],
        seconds: int,
        after: Sequence[pulumi.Resource],
    ) -> k8s.batch.v1.Job:
        main = command[0]
        program = container(
            main,
            runtime=args.runtime,
            arguments=command,
            environment=environment,
            limits=args.limits,
            credentials=args.store.credentials,
        )
        return job(
            name,
            namespace=args.namespace,
            labels=args.labels,
            pod=pod(
                runtime=args.runtime,
                config_map=f"{self._name}-program",
                containers=[program],
                service_account=args.service_account,
                node_selector=args.node_selector,
                tolerations=args.tolerations,
                restart="Never",
            ),
            main=main,
            seconds=seconds,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )
