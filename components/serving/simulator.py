"""The llm-d inference simulator in the place of an engine."""

from __future__ import annotations

from typing import Any

from components.serving.pods import PodTemplate, field_variable, http_probe, resources, restricted, without_token
from planning.dev import DRAIN_SECONDS, GRACE_SECONDS, SIMULATOR_HEAP_MIB, Workload


def simulator(workload: Workload, *, image: str, leader: bool) -> PodTemplate:
    """A simulator's pod. leader: of a group; an engine that is no group is its own leader."""
    return PodTemplate(
        labels={**workload.labels, **(workload.leader_labels if leader else {})}, spec=_spec(workload, image=image)
    )


def _spec(workload: Workload, *, image: str) -> dict[str, Any]:
    probes = {
        "startup": workload.probes.startup,
        "liveness": workload.probes.liveness,
        "readiness": workload.probes.readiness,
    }
    container = {
        "name": "engine",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": list(workload.arguments),
        # The simulator's cache signs its events with these, as the real engine does.
        "env": [
            field_variable("POD_IP", "status.podIP"),
            field_variable("POD_NAME", "metadata.name"),
            field_variable("POD_NAMESPACE", "metadata.namespace"),
            {"name": "GOMEMLIMIT", "value": f"{SIMULATOR_HEAP_MIB}MiB"},
        ],
        "ports": [{"name": "http", "containerPort": workload.port}],
        "resources": resources(cpu_millicores=workload.cpu_millicores, memory_mib=workload.memory_mib),
        "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}},
        "securityContext": restricted(),
        **{f"{name}Probe": http_probe(probe) for name, probe in probes.items() if probe},
    }
    return {**without_token(), "terminationGracePeriodSeconds": GRACE_SECONDS, "containers": [container]}
