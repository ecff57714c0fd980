"""A Job of the staging program that `up` waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.weights.program import program_digest
from components.weights.staging.errors import RETRY

KILLED = 137
"""Exit code of a container that the kernel or the kubelet killed."""

AWAIT_MARGIN_SECONDS = 120
"""`up` waits this much longer than the Job may run, so that it reports the Job's own reason."""


def job(
    name: str,
    *,
    namespace: pulumi.Input[str],
    labels: Mapping[str, str],
    pod: Mapping[str, Any],
    main: str,
    seconds: int,
    opts: pulumi.ResourceOptions,
) -> k8s.batch.v1.Job:
    """The Job. main: the container whose exit code tells whether another try helps. seconds: how long it may run."""
    spec = {
        # One failure that counts ends the Job with the reason BackoffLimitExceeded. A rule of action FailJob would end it as well, but
        # Pulumi's provider does not know that reason and would wait for the whole time limit.
        "backoffLimit": 0,
        "activeDeadlineSeconds": seconds,
        "podFailurePolicy": {
            "rules": [
                # Tries that may end better do not count, nor does a drained or evicted node: the next pod goes on.
                {
                    "action": "Ignore",
                    "onExitCodes": {"containerName": main, "operator": "In", "values": sorted([*RETRY, KILLED])},
                },
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": {
            "metadata": {"labels": dict(labels), "annotations": {"checksum/program": program_digest()}},
            "spec": dict(pod),
        },
    }
    return k8s.batch.v1.Job(
        name,
        metadata={
            "name": name,
            "namespace": namespace,
            "labels": dict(labels),
            # A Job that failed is made anew by the next `up`: it goes on where it stopped.
            "annotations": {"pulumi.com/replaceUnready": "true"},
        },
        spec=spec,
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                # A Job's pod template can't change: another source or program is a new Job under the same name.
                delete_before_replace=True,
                replace_on_changes=["spec"],
                custom_timeouts=pulumi.CustomTimeouts(
                    create=f"{seconds + AWAIT_MARGIN_SECONDS}s", update=f"{seconds + AWAIT_MARGIN_SECONDS}s"
                ),
            ),
        ),
    )
