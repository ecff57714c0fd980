"""The schema of the dev environment: the same graph, small, on any cluster in a kubeconfig."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planning.settings.base import Kubernetes, Model, Name, Settings, Stack


class Simulator(Settings):
    """How the simulated engine behaves."""

    context_tokens: int = Field(65536, ge=1024, description="Longest prompt and answer together, in tokens.")
    block_tokens: Literal[8, 16, 32, 64, 128] = Field(
        64, description="Tokens of a cache block; the simulator knows these sizes only."
    )
    cache_blocks: int = Field(4096, ge=16, description="Blocks that one engine's cache holds.")
    first_token_ms: int = Field(20, ge=0, description="Time to the first token, in milliseconds.")
    token_ms: int = Field(2, ge=0, description="Time between tokens, in milliseconds.")
    load_seconds: int = Field(
        0, ge=0, le=600, description="How long an engine says that it still loads, as one with real weights would."
    )


class Disaggregated(Settings):
    """Prefill and decode apart. The guide's shape is 3 groups of 2 pods for prefill and 1 of 4 for decode."""

    prefill_groups: int = Field(3, ge=1, le=16, description="Prefill groups.")
    prefill_pods: int = Field(2, ge=1, le=16, description="Pods of a prefill group; its leader answers for all.")
    decode_groups: int = Field(1, ge=1, le=16, description="Decode groups.")
    decode_pods: int = Field(4, ge=1, le=16, description="Pods of a decode group; each is an endpoint.")


class Unified(Settings):
    """Engines that do both."""

    replicas: int = Field(2, ge=1, le=32, description="Engines behind the endpoint picker.")


class Dev(Stack):
    """The environment without accelerators."""

    target: Literal["dev"]
    model: Model
    kubernetes: Kubernetes = Field(
        default_factory=lambda: Kubernetes(kubeconfig=None, context=None), description="The cluster to use."
    )
    adopt: bool = Field(
        False,
        description="Whether objects that are in the cluster already are taken over, and removed with the stack. Right for a cluster "
        "that is this stack's alone: then `up` goes on after a kill. Elsewhere it would take what is others'.",
    )
    namespace: Name = Field(
        "llm-serving",
        description="Namespace of engines, routers and checks; the hub and the store are in <namespace>-weights.",
    )
    staging_packages: Literal["install", "in-image"] = Field(
        "install",
        description="Whether the staging program's packages are installed when it starts, each checked against its hash, or are in "
        "the Python image that the mirror has.",
    )
    simulator: Simulator = Field(default_factory=lambda: Simulator(), description="The simulated engine.")
    unified: Unified = Field(default_factory=lambda: Unified(), description="The shape behind the endpoint picker.")
    disaggregated: Disaggregated = Field(
        default_factory=lambda: Disaggregated(), description="The shape with prefill and decode apart."
    )
    ready_seconds: int = Field(
        180, ge=30, le=3600, description="How long a rollout may take, on top of simulator.load_seconds."
    )
