"""What a component needs to run an engine, and what the smoke check sends it."""

from __future__ import annotations

from planning.parts import Part


class Probe(Part):
    """An HTTP probe on the engine's port. Seconds; tries before it counts as failed."""

    path: str
    port: int
    period_seconds: int
    timeout_seconds: int
    failure_threshold: int


class Probes(Part):
    """The three probes of a container; None: this pod answers nothing, and its group's restart policy watches it."""

    startup: Probe | None
    liveness: Probe | None
    readiness: Probe | None


class Group(Part):
    """Pods that make up one replica. pods: in a LeaderWorkerSet; 1 is an ordinary Deployment."""

    replicas: int
    pods: int


class GpuClaim(Part):
    """The devices of one pod. ranks: engine ranks on them (a TPU chip has two). selector: CEL over a device's attributes;
    empty with the device plugin."""

    device_class: str
    count: int
    ranks: int
    selector: str


class EngineWorkload(Part):
    """One role's engine. image: with its digest. command and arguments: as the recipe has them, in order.
    `$(POD_IP)` in arguments and env stands for the pod's own address, which the component provides as a variable.

    cpu_millicores, memory_gib, shm_gib, ephemeral_gib: of one pod; memory is request and limit and holds shm.
    ready_seconds: how long a rollout of one replica may take. drain_seconds: for the router to notice; grace_seconds: for
    running requests, drain included. labels: what router and metrics select by. running_requests: that one replica takes at a time.
    """

    role: str
    engine: str
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    env: dict[str, str]
    port: int
    ports: tuple[int, ...]
    group: Group
    claim: GpuClaim
    probes: Probes
    cpu_millicores: int
    memory_gib: int
    shm_gib: int
    ephemeral_gib: int
    ready_seconds: int
    drain_seconds: int
    grace_seconds: int
    labels: dict[str, str]
    served_name: str
    context_tokens: int
    running_requests: int
    block_tokens: int

    @property
    def pods(self) -> int:
        """All pods of this role."""
        return self.group.replicas * self.group.pods


class WeightsPlan(Part):
    """The copy that engines read. prefix: of the revision inside the bucket. checkpoint_bytes: published size.

    stage_seconds: how long the staging Job may take; hydrate_seconds: the copy from the bucket to where engines read.
    """

    repo: str
    revision: str
    prefix: str
    checkpoint_bytes: int
    store: str
    parallel_files: int
    stage_seconds: int
    hydrate_seconds: int


class Quota(Part):
    """What a namespace may hold at most."""

    pods: int
    cpu_millicores: int
    memory_mib: int


class PoolPlan(Part):
    """The accelerator nodes. efa_cards: network cards that get an EFA device; none for one node."""

    machine: str
    nodes: int
    efa_cards: tuple[int, ...]
    accelerators_per_node: int
    disk_gib: int


class SmokePlan(Part):
    """What the smoke check sends, in order. over_long_tokens: a prompt that must be refused with a 4xx."""

    model: str
    checks: tuple[str, ...]
    over_long_tokens: int
    timeout_seconds: int


UNIFIED_CHECKS = ("models", "completion", "chat-with-reasoning", "streaming", "tool-call", "over-long-prompt")
