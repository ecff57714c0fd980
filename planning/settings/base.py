"""Settings that every environment has. All models are frozen and refuse unknown keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$", description="A commit of the hub repository: 40 hex digits, never a branch name.")]


class Settings(BaseModel):
    """Base of every settings model: frozen, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Kubernetes(Settings):
    """The cluster of a stack that brings none of its own (target dev)."""

    kubeconfig: str | None = Field(None, description="Path of the kubeconfig file; unset: $KUBECONFIG or ~/.kube/config.")
    context: str | None = Field(None, description="Context inside the kubeconfig; unset: its current context.")


class Artifacts(Settings):
    """Where images, charts and CRD bundles come from."""

    mirror: str | None = Field(
        None,
        description="Registry prefix that holds a copy of every image: ghcr.io/a/b:1 is then pulled as <mirror>/ghcr.io/a/b:1. "
        "Air-gapped sites and the embedded cluster use it.",
    )
    bundle: str | None = Field(
        None,
        description="Directory, relative to the project, with charts and CRDs (charts/NAME-VERSION/, crds/NAME-VERSION/) "
        "instead of their public addresses.",
    )


class Model(Settings):
    """Which model is served, from which hub, under which name."""

    repo: str = Field("moonshotai/Kimi-K3.1-Pro", description="Repository on the hub, owner/name.")
    revision: Revision
    served_name: str | None = Field(None, description="Name that requests carry in `model`; unset: the repository's name.")

    @property
    def name(self) -> str:
        """The name that requests carry."""
        return self.served_name or self.repo
