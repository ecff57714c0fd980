"""Where pods are defined, whatever the kind of workload, and what every one of them must have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.rule import Rule, items, part

LEADER_WORKER_SET = "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet"
WORKLOADS = frozenset(
    (
        "kubernetes:apps/v1:Deployment",
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:apps/v1:StatefulSet",
        "kubernetes:batch/v1:Job",
        "kubernetes:batch/v1:CronJob",
        "kubernetes:core/v1:Pod",
        LEADER_WORKER_SET,
    )
)
EXACT = re.compile(r"\d+\.\d+\.\d+")
"""A tag that names one release. `v0`, `main`, `nightly` or a model's name may be another image tomorrow."""

SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|API_KEY|ACCESS_KEY)$", re.IGNORECASE)


def pods(workload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The pod specs of a workload: one, or a leader's and a worker's."""
    spec = part(workload, "spec") or {}
    if "containers" in spec:
        return [spec]
    spec = part(spec, "jobTemplate", "spec") or spec
    group = part(spec, "leaderWorkerTemplate") or {}
    templates = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    return [part(template, "spec") or {} for template in templates if template]


def containers(workload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All containers of all its pods, those that start first included."""
    return [
        container
        for pod in pods(workload)
        for container in (*items(pod.get("initContainers")), *items(pod.get("containers")))
    ]


def _moving_image(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in containers(workload):
        image = str(container.get("image", ""))
        tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
        if "@sha256:" not in image and not EXACT.search(tag):
            yield f"The image {image} may change under its name: pin it by digest, or by a version such as 1.2.3."


def _no_request(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in containers(workload):
        requested = part(container, "resources", "requests") or {}
        missing = [name for name in ("cpu", "memory") if name not in requested]
        if missing:
            yield (
                f"The container {container.get('name')} requests no {' and no '.join(missing)}: "
                "the scheduler takes it for free and overfills the node. Set resources.requests."
            )


def _default_token(workload: Mapping[str, Any]) -> Iterator[str]:
    for pod in pods(workload):
        if not pod.get("serviceAccountName") and pod.get("automountServiceAccountToken") is not False:
            yield "A pod gets the token of its namespace's default account: set automountServiceAccountToken to false, or name an account."


def _secret_in_plain(workload: Mapping[str, Any]) -> Iterator[str]:
    for container in containers(workload):
        for variable in items(container.get("env")):
            if SECRET_NAME.search(str(variable.get("name"))) and variable.get("value"):
                yield (
                    f"The container {container.get('name')} has {variable.get('name')} in plain text, and so has the state: "
                    "refer to a Secret (valueFrom.secretKeyRef)."
                )


def _escalation(workload: Mapping[str, Any]) -> Iterator[str]:
    for pod in pods(workload):
        profile = part(pod, "securityContext", "seccompProfile", "type")
        for container in (*items(pod.get("initContainers")), *items(pod.get("containers"))):
            context = container.get("securityContext") or {}
            if not context.get("privileged") and context.get("allowPrivilegeEscalation") is not False:
                yield f"The container {container.get('name')} may gain privileges: set allowPrivilegeEscalation to false."
            if not context.get("privileged") and not (profile or part(context, "seccompProfile", "type")):
                yield f"The container {container.get('name')} may make every system call: set seccompProfile to RuntimeDefault."


def _unawaited_group(group: Mapping[str, Any]) -> Iterator[str]:
    if "pulumi.com/waitFor" not in (part(group, "metadata", "annotations") or {}):
        yield "Pulumi waits for no custom resource by itself: set the annotation pulumi.com/waitFor to condition=Available."


def _spare_group(group: Mapping[str, Any]) -> Iterator[str]:
    surge = part(group, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "maxSurge")
    if surge not in (0, 0.0, "0", "0%"):
        yield "A rollout would start a new group before the old one ends, and there are no spare nodes: set maxSurge to 0."


RULES = (
    Rule(name="images-pinned", description="No image moves under its name.", types=WORKLOADS, check=_moving_image),
    Rule(
        name="resources-requested",
        description="Every container says what it needs.",
        types=WORKLOADS,
        check=_no_request,
    ),
    Rule(
        name="no-default-token",
        description="A token of the Kubernetes API is asked for by name.",
        types=WORKLOADS,
        check=_default_token,
    ),
    Rule(
        name="no-secret-in-plain-text",
        description="Secrets are referred to, never written out.",
        types=WORKLOADS,
        check=_secret_in_plain,
    ),
    Rule(
        name="no-escalation",
        description="A container that is not privileged can't become it.",
        types=WORKLOADS,
        check=_escalation,
    ),
    Rule(
        name="groups-awaited",
        description="`up` ends when groups answer.",
        types=frozenset({LEADER_WORKER_SET}),
        check=_unawaited_group,
    ),
    Rule(
        name="no-spare-group",
        description="A group's rollout works with the nodes that are there.",
        types=frozenset({LEADER_WORKER_SET}),
        check=_spare_group,
    ),
)
