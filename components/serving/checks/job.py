"""A check program as a Job that `up` waits for: when it fails, `up` fails with what it said."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.serving.pods import resources

PROGRAMS = Path(__file__).parent
MOUNT = "/checks"
USER = 65532


@dataclass(frozen=True, kw_only=True)
class CheckJobArgs:
    """program: a file of this package, without .py. image: any with python3. environment: the program's own variables.

    seconds: how long it may take. changes_with: values whose change makes it run again. cpu_millicores: requested;
    memory_mib: at most.
    """

    namespace: pulumi.Input[str]
    program: str
    image: str
    environment: Mapping[str, pulumi.Input[str]]
    seconds: int
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    changes_with: tuple[str, ...] = ()
    cpu_millicores: int = 100
    memory_mib: int = 1024


class CheckJob(pulumi.ComponentResource):
    """A ConfigMap with the program and a Job that runs it once, without retry: a check that needs luck proves nothing.

    job: the Job, complete.
    """

    def __init__(self, name: str, *, args: CheckJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:serving:CheckJob", name, {}, opts)
        text = program_text(args.program)
        labels = {"app.kubernetes.io/name": name, **args.labels}
        stored = k8s.core.v1.ConfigMap(
            name,
            metadata={"name": name, "namespace": args.namespace},
            data={f"{args.program}.py": text},
            opts=pulumi.ResourceOptions(parent=self),
        )
        digest = hashlib.sha256("\n".join((text, *args.changes_with)).encode()).hexdigest()
        self.job = k8s.batch.v1.Job(
            name,
            metadata={
                "name": name,
                "namespace": args.namespace,
                "labels": labels,
                # A check that failed is made anew by the next `up`.
                "annotations": {"pulumi.com/replaceUnready": "true"},
            },
            spec={
                "backoffLimit": 0,
                "activeDeadlineSeconds": args.seconds,
                "template": {
                    "metadata": {"labels": labels, "annotations": {"checksum/what-it-checks": digest}},
                    "spec": _pod(args, name=name),
                },
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[stored],
                # A Job's pod template can't change: a new check is a new Job under the same name.
                delete_before_replace=True,
                replace_on_changes=["spec"],
                custom_timeouts=pulumi.CustomTimeouts(create=f"{args.seconds + 60}s"),
            ),
        )
        self.register_outputs({})


def program_text(program: str) -> str:
    """The program as it is in this package."""
    return (PROGRAMS / f"{program}.py").read_text()


def _pod(args: CheckJobArgs, *, name: str) -> dict[str, Any]:
    container = {
        "name": args.program,
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", f"{MOUNT}/{args.program}.py"],
        "env": [{"name": key, "value": value} for key, value in args.environment.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": resources(cpu_millicores=args.cpu_millicores, memory_mib=args.memory_mib),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "program", "mountPath": MOUNT, "readOnly": True}],
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(args.node_selector),
        "containers": [container],
        "volumes": [{"name": "program", "configMap": {"name": name}}],
    }
