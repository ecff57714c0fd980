"""The schema of the dev environment: the same graph, small, on any cluster in a kubeconfig."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planning.settings.base import Kubernetes, Model, Stack


class Dev(Stack):
    """The environment without accelerators."""

    target: Literal["dev"]
    model: Model
    kubernetes: Kubernetes = Field(
        default_factory=lambda: Kubernetes(kubeconfig=None, context=None), description="The cluster to use."
    )
