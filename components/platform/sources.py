"""Where charts and CRDs are read from: their public addresses, or a bundle directory."""

from __future__ import annotations

from catalog.artifacts import Chart, CrdBundle
from components.platform.gpu import ChartSource


def chart_source(chart: Chart, *, bundle: str | None) -> ChartSource:
    """A chart at its public address, or in the bundle (a directory relative to the project)."""
    if bundle:
        return ChartSource(chart=f"{bundle}/{chart.directory}")
    return ChartSource(chart=chart.reference, version=chart.version, repository=chart.repository)


def crd_files(crds: CrdBundle, *, bundle: str | None) -> tuple[str, ...]:
    """The published manifest's address, or a pattern for the bundle's files; the provider resolves it."""
    return (f"{bundle}/{crds.directory}/*.yaml",) if bundle else (crds.address,)
