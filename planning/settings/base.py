"""Settings that every environment has. All models are frozen and refuse unknown keys."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

WORD = re.compile(r"-{0,2}[A-Za-z_][\w.-]*", re.ASCII)
"""A flag's or variable's name."""
FULL_COMMIT = r"^[0-9a-f]{40}$"
Revision = Annotated[
    str, Field(pattern=FULL_COMMIT, description="A commit of the hub repository: 40 hex digits, never a branch name.")
]
Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="Lower-case letters, digits and hyphens; at most 40 characters.",
    ),
]


def problem(what: str, *, why: str, remedy: str) -> PydanticCustomError:
    """What a validator raises: the three parts of the finding that the user will read."""
    return PydanticCustomError("problem", "{what}", {"what": what, "why": why, "remedy": remedy})


def how(remedy: str) -> dict[str, Any]:
    """`json_schema_extra` of a field that only its owner can fill in: how to find the value."""
    return {"how": remedy}


class Settings(BaseModel):
    """Base of every settings model: frozen, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Kubernetes(Settings):
    """The cluster of a stack that brings none of its own (target dev)."""

    kubeconfig: str | None = Field(
        None, description="Path of the kubeconfig file; unset: $KUBECONFIG or ~/.kube/config."
    )
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

    repo: str = Field(
        "moonshotai/Kimi-K3.1-Pro",
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="Repository on the hub, owner/name.",
    )
    revision: Revision
    served_name: str | None = Field(
        None, min_length=1, description="Name that requests carry in `model`; unset: the repository's name."
    )

    @property
    def name(self) -> str:
        """The name that requests carry."""
        return self.served_name or self.repo


class SecretKey(Settings):
    """One key of a Kubernetes Secret that exists already; the program never sees its value."""

    name: str = Field(min_length=1, description="Name of the Secret, in the namespace of what uses it.")
    key: str = Field(min_length=1, description="Key inside the Secret.")


class Staging(Settings):
    """How the weights get from the hub into the bucket."""

    token: SecretKey | None = Field(
        None, description="Secret with the hub token; unset: anonymous, which public repositories allow."
    )
    hub_mbps: float = Field(
        500.0,
        gt=0,
        le=100_000,
        allow_inf_nan=False,
        description="Rate in MB/s that you expect from the hub. Only the plan uses it: when to start, how long to wait.",
    )
    parallel_files: int = Field(8, ge=1, le=64, description="Files that are copied at the same time.")
    proxy: str | None = Field(
        None,
        pattern=r"^http://[A-Za-z0-9.-]+:[0-9]{1,5}$",
        description="Proxy through which the hub is reached, http://HOST:PORT; unset: directly. The bucket is never asked "
        "through it. It can't ask for a password: settings hold no secrets.",
    )
    package_index: str | None = Field(
        None,
        pattern=r"^https://[^\s@/:]+(/[^\s@]*)?$",
        description="Python package index of your own, https://HOST/PATH, for the packages of the staging program (their hashes are "
        "checked); unset: PyPI. It is asked directly.",
    )

    @property
    def proxy_port(self) -> int | None:
        """TCP port of the proxy."""
        return int(self.proxy.rpartition(":")[2]) if self.proxy else None

    @field_validator("proxy")
    @classmethod
    def _port(cls, value: str | None) -> str | None:
        if value and not 1 <= int(value.rpartition(":")[2]) <= 65535:
            raise problem(
                f"{value} has no TCP port",
                why="ports are 1 to 65535",
                remedy="Write the port that the proxy listens on",
            )
        return value


FlagValue = bool | int | float | str | None


class Engine(Settings):
    """What differs from the recipe. The recipe's own flags and variables are the defaults; the rules check the result."""

    image: str | None = Field(None, description="Another image, with its digest (name@sha256:…); unset: the recipe's.")
    flags: dict[str, FlagValue] = Field(
        default_factory=dict,
        description="Engine flags by name without the leading dashes: a value sets or replaces it, true is a bare flag, "
        "false and null take it away.",
    )
    env: dict[str, str | None] = Field(
        default_factory=dict, description="Environment variables; null takes one away that the recipe sets."
    )

    @field_validator("flags", "env")
    @classmethod
    def _names(cls, given: dict[str, Any]) -> dict[str, Any]:
        if wrong := [name for name in given if not WORD.fullmatch(name)]:
            raise problem(
                f"{', '.join(map(repr, wrong))} can't be the name of a flag or variable",
                why="it holds something else than letters, digits, - and _, or nothing",
                remedy="Write names such as tp-size or NCCL_DEBUG, the value behind the colon",
            )
        return given


class Stack(Settings):
    """What every environment has, whatever its hardware."""

    artifacts: Artifacts = Field(default_factory=Artifacts, description="Where images and charts come from.")
    acknowledge: dict[str, Annotated[str, Field(min_length=8)]] = Field(
        default_factory=dict,
        description="Rules that you have decided to live with: rule id → your reason. Turns their errors into notes.",
    )
