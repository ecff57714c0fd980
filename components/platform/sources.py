"""Where charts and CRDs are read from: their public addresses, or a bundle directory."""

from __future__ import annotations

from pathlib import Path

from catalog.artifacts import Chart, CrdBundle
from components.platform.gpu import ChartSource


def chart_source(chart: Chart, *, bundle: str | None) -> ChartSource:
    """A chart at its public address, or in the bundle (a directory relative to the project)."""
    if bundle:
        return ChartSource(chart=f"{bundle}/{chart.directory}")
    return ChartSource(chart=chart.reference, version=chart.version, repository=chart.repository)


def crd_files(crds: CrdBundle, *, bundle: str | None) -> tuple[str, ...]:
    """The published manifest's address, or the bundle's files in their order. Raises FileNotFoundError with the remedy."""
    if bundle is None:
        return (crds.address,)
    directory = Path(bundle) / crds.directory
    files = tuple(str(path) for path in sorted(directory.glob("*.yaml")))
    if not files:
        raise FileNotFoundError(
            f"{directory} has no YAML file: the bundle lacks the CRDs {crds.name} {crds.version}. "
            f"Put {crds.address} there, or leave artifacts.bundle out."
        )
    return files
