"""The directory of charts and CRDs that `artifacts.bundle` names: copied from the Go modules that hold them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from catalog import artifacts
from sandbox.toolchain import module_directory

_PLACES = {
    artifacts.LWS_CHART.directory: ("sigs.k8s.io/lws", "llm", "charts/lws"),
    artifacts.INFERENCE_EXTENSION_CRDS.directory: (
        "sigs.k8s.io/gateway-api-inference-extension",
        "llm",
        "config/crd/bases",
    ),
    artifacts.NVIDIA_DRA_DRIVER_CHART.directory: (
        "sigs.k8s.io/dra-driver-nvidia-gpu",
        "dra-driver",
        "deployments/helm/dra-driver-nvidia-gpu",
    ),
    artifacts.GATEWAY_API_CRDS.directory: ("sigs.k8s.io/gateway-api", "crds", "config/crd/standard"),
}
"""Directory in the bundle → module, module under sandbox/tools that pins it, directory in it."""


def make_bundle(target: Path) -> None:
    """Writes what is missing below `target`; each directory appears whole."""
    for directory, (module, pinned_by, inside) in _PLACES.items():
        place = target / directory
        if place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
            copy = Path(scratch, place.name)
            shutil.copytree(module_directory(module, module=pinned_by) / inside, copy, copy_function=shutil.copyfile)
            for path in [copy, *copy.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            if not place.exists():  # another process may have made it meanwhile
                copy.rename(place)
