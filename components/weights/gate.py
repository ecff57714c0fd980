"""What stands in front of an engine: an init container that ends well only when the copy under it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.weights.program import USER, sources_json
from components.weights.staging.manifest import Source

PROGRAM = Path(__file__).parent / "gate_program.py"
MOUNT = "/weights"


def gate_container(
    *, image: str, sources: Sequence[Source], volume: str, folder: str = "", seconds: int, user: int = USER
) -> dict[str, Any]:
    """An init container for a pod that has the volume `volume`, in which the copies lie below `folder`.

    image: any with Python 3.11 or newer, such as the engine's own, which is there already. seconds: how long it waits for the
    copy, from the plan: the node may be filling its disks still.
    """
    return {
        "name": "weights-verified",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", PROGRAM.read_text(encoding="utf-8")],
        "env": [
            {"name": "SOURCES", "value": sources_json(sources)},
            {"name": "DIRECTORY", "value": f"{MOUNT}/{folder}".rstrip("/")},
            {"name": "WAIT_SECONDS", "value": str(seconds)},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": user,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": volume, "mountPath": MOUNT, "readOnly": True}],
    }
