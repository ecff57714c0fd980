"""The dev environment, planned: sizes, arguments, router configurations and flows of the production graph in small."""

from __future__ import annotations

from planning.flows import API_SERVER_PORTS, Anywhere, ApiServer, Flow, Pods
from planning.parts import Part
from planning.router import RouterPlan, SplitRouterPlan, unified_picker
from planning.settings.dev import Dev, Simulator
from planning.workload import Group, Probe, Probes, Quota

ENGINE_PORT = 8000
"""The guide's port of prefill engines and of what is in front of decode engines."""

WEBHOOK_PORT = 9443
HUB_PORT, HUB_BLOB_PORT = 8080, 8081
STORE_PORT = 7070
ROUTER_PORT = 8081
"""The inference extension's Envoy listener (config/charts/standalone/values.yaml, v1.5.0); the other router takes it too."""

LWS_NAMESPACE = "lws-system"
NAME, ROLE = "app.kubernetes.io/name", "llm-d.ai/role"

SIMULATOR_CPU_MILLICORES, SIMULATOR_MEMORY_MIB = 10, 192
"""Measured: 42 MiB at rest; behind a picker that reads metrics twenty times a second the garbage between two collections comes on top."""

SIMULATOR_HEAP_MIB = 128
"""At which Go collects more eagerly, so that garbage alone never reaches the limit."""

BODY_MIB_PER_TOKEN = 8 / 1024**2
"""Bytes of JSON for one token, generously; the simulator refuses longer bodies."""

DRAIN_SECONDS = 3
"""An engine goes on answering for so long after it left the endpoints, so that routers notice first."""

GRACE_SECONDS = DRAIN_SECONDS + 12
"""Then running requests may end; the longest answer of a smoke check takes well under a second here."""

STAGE_SECONDS = 300
"""A few megabytes; most of it is the start of the program, and patience with a hub that starts at the same time."""

SMOKE_WAIT_SECONDS = 30
"""How long a router that is ready may take to list the model, and one request to be answered."""

SMOKE_CHECKS = ("models", "guide")
UNIFIED, PREFILL, DECODE = "unified", "prefill", "decode"
UNIFIED_SHAPE, DISAGGREGATED_SHAPE = "unified", "disaggregated"


class Workload(Part):
    """One role's simulators. arguments: of the simulator. labels: of every pod; leader_labels: more, on the pods that answer.

    cpu_millicores, memory_mib: of one pod; memory is request and limit. ready_seconds: how long a rollout may take.
    """

    role: str
    group: Group
    arguments: tuple[str, ...]
    port: int
    probes: Probes
    labels: dict[str, str]
    leader_labels: dict[str, str]
    cpu_millicores: int
    memory_mib: int
    ready_seconds: int

    @property
    def pods(self) -> int:
        """All pods of this role."""
        return self.group.replicas * self.group.pods


class DevPlan(Part):
    """The dev environment. Immutable. flows: everything that may be said between pods; the rest is refused."""

    target: str
    model: str
    repo: str
    revision: str
    serving_namespace: str
    weights_namespace: str
    unified: Workload
    prefill: Workload
    decode: Workload
    picker: RouterPlan
    split: SplitRouterPlan
    stage_seconds: int
    smoke_seconds: int
    quota: Quota
    flows: tuple[Flow, ...]

    def summary(self) -> dict[str, str]:
        """The plan in a few lines, for the stack's outputs."""
        return {
            "model": f"{self.model} (simulated), weights {self.repo}@{self.revision[:12]}",
            UNIFIED_SHAPE: f"{self.unified.group.replicas} engines behind Envoy and the endpoint picker",
            DISAGGREGATED_SHAPE: (
                f"{self.prefill.group.replicas} × {self.prefill.group.pods} prefill and "
                f"{self.decode.group.replicas} × {self.decode.group.pods} decode pods behind vllm-router"
            ),
            "pods": str(self.unified.pods + self.prefill.pods + self.decode.pods),
            "flows": f"{len(self.flows)} allowed, all others refused",
        }


def plan_dev(settings: Dev) -> DevPlan:
    """The plan of a dev environment."""
    serving, weights = settings.namespace, f"{settings.namespace}-weights"
    apart = settings.disaggregated
    unified = _workload(settings, role=UNIFIED, group=Group(replicas=settings.unified.replicas, pods=1))
    prefill = _workload(
        settings, role=PREFILL, group=Group(replicas=apart.prefill_groups, pods=apart.prefill_pods), leaders_answer=True
    )
    decode = _workload(settings, role=DECODE, group=Group(replicas=apart.decode_groups, pods=apart.decode_pods))
    workloads = (unified, prefill, decode)
    return DevPlan(
        target=settings.target,
        model=settings.model.name,
        repo=settings.model.repo,
        revision=settings.model.revision,
        serving_namespace=serving,
        weights_namespace=weights,
        unified=unified,
        prefill=prefill,
        decode=decode,
        picker=_picker(settings, unified),
        split=SplitRouterPlan(
            prefill=tuple(leader_address(PREFILL, group) for group in range(apart.prefill_groups)),
            decode=tuple(
                pod_address(DECODE, group, pod)
                for group in range(apart.decode_groups)
                for pod in range(apart.decode_pods)
            ),
        ),
        stage_seconds=STAGE_SECONDS,
        smoke_seconds=settings.ready_seconds,
        quota=_quota(workloads),
        flows=tuple(_flows(serving=serving, weights=weights, workloads=workloads)),
    )


def leader_address(name: str, group: int) -> str:
    """URL of a group's leader, by the host name that LeaderWorkerSet gives it."""
    return f"http://{name}-{group}.{name}:{ENGINE_PORT}"


def pod_address(name: str, group: int, pod: int) -> str:
    """URL of one pod of a group; pod 0 is the leader."""
    return leader_address(name, group) if pod == 0 else f"http://{name}-{group}-{pod}.{name}:{ENGINE_PORT}"


def simulator_arguments(simulator: Simulator, *, model: str) -> tuple[str, ...]:
    """The simulator's command line. It refuses flags of real engines, hence its own settings."""
    flags = {
        "model": model,
        "served-model-name": model,
        "port": str(ENGINE_PORT),
        "max-model-len": str(simulator.context_tokens),
        "max-request-body-size-mb": str(min(512, max(4, round(simulator.context_tokens * BODY_MIB_PER_TOKEN)))),
        "block-size": str(simulator.block_tokens),
        "kv-cache-size": str(simulator.cache_blocks),
        "time-to-first-token": f"{simulator.first_token_ms}ms",
        "inter-token-latency": f"{simulator.token_ms}ms",
        "startup-duration": f"{simulator.load_seconds}s",
    }
    return (
        *(part for name, value in flags.items() for part in (f"--{name}", value)),
        "--enable-kvcache",
        # A real model's tokenizer would have to be downloaded from the hub.
        "--force-dummy-tokenizer",
    )


def _workload(settings: Dev, *, role: str, group: Group, leaders_answer: bool = False) -> Workload:
    ready = settings.ready_seconds + settings.simulator.load_seconds
    labels = {NAME: "engine", ROLE: role}
    return Workload(
        role=role,
        group=group,
        arguments=simulator_arguments(settings.simulator, model=settings.model.name),
        port=ENGINE_PORT,
        probes=_probes(ready),
        labels=labels if leaders_answer else {**labels, ENDPOINT: "true"},
        leader_labels={ENDPOINT: "true"} if leaders_answer else {},
        cpu_millicores=SIMULATOR_CPU_MILLICORES,
        memory_mib=SIMULATOR_MEMORY_MIB,
        ready_seconds=ready,
    )


ENDPOINT = "llm-d.ai/inference-serving"
"""Label of pods that answer requests. In a group of one engine the leader answers, its workers do not."""


def _probes(ready_seconds: int) -> Probes:
    start = Probe(
        path="/health/ready", port=ENGINE_PORT, period_seconds=1, timeout_seconds=2, failure_threshold=ready_seconds
    )
    return Probes(
        startup=start,
        liveness=Probe(path="/health", port=ENGINE_PORT, period_seconds=10, timeout_seconds=2, failure_threshold=3),
        readiness=Probe(
            path="/health/ready", port=ENGINE_PORT, period_seconds=5, timeout_seconds=2, failure_threshold=2
        ),
    )


def _picker(settings: Dev, unified: Workload) -> RouterPlan:
    simulator = settings.simulator
    return RouterPlan(
        flavour="inference-extension",
        model=settings.model.name,
        engine="vllm",
        target_ports=(unified.port,),
        match_labels=unified.labels,
        block_tokens=simulator.block_tokens,
        max_prefix_tokens=simulator.context_tokens,
        lru_blocks=simulator.cache_blocks,
        picker=unified_picker(
            flavour="inference-extension",
            block_tokens=simulator.block_tokens,
            max_prefix_tokens=simulator.context_tokens,
            lru_blocks=simulator.cache_blocks,
        ),
    )


ROUTER_CPU_MILLICORES, ROUTER_MEMORY_MIB = 50, 512
ROUTER_CONTAINERS = 3
"""Envoy, the endpoint picker, and the other router."""

SMOKE_CPU_MILLICORES, SMOKE_MEMORY_MIB, SMOKE_JOBS = 20, 128, 2


def _quota(workloads: tuple[Workload, ...]) -> Quota:
    """Everything at once, and one more group of each role: a pod that ends still counts while its successor starts."""
    pods = [(each.group.replicas + 1) * each.group.pods for each in workloads]
    engines = list(zip(pods, workloads, strict=True))
    return Quota(
        pods=sum(pods) + 2 * 2 + 2 * SMOKE_JOBS,
        cpu_millicores=sum(n * each.cpu_millicores for n, each in engines)
        + 2 * ROUTER_CONTAINERS * ROUTER_CPU_MILLICORES
        + 2 * SMOKE_JOBS * SMOKE_CPU_MILLICORES,
        memory_mib=sum(n * each.memory_mib for n, each in engines)
        + 2 * ROUTER_CONTAINERS * ROUTER_MEMORY_MIB
        + 2 * SMOKE_JOBS * SMOKE_MEMORY_MIB,
    )


def router_labels(shape: str) -> dict[str, str]:
    """Labels of a shape's router pods."""
    return {NAME: "router", "app.kubernetes.io/instance": shape}


SMOKE_LABELS = {NAME: "smoke"}
HUB_LABELS, STORE_LABELS, STAGING_LABELS = {NAME: "hub"}, {NAME: "store"}, {NAME: "staging"}
LWS_LABELS = {"control-plane": "controller-manager"}


def _flows(*, serving: str, weights: str, workloads: tuple[Workload, ...]) -> list[Flow]:
    unified, prefill, decode = (
        Pods(namespace=serving, labels={**each.labels, **each.leader_labels}) for each in workloads
    )
    picker = Pods(namespace=serving, labels=router_labels(UNIFIED_SHAPE))
    splitter = Pods(namespace=serving, labels=router_labels(DISAGGREGATED_SHAPE))
    smoke = Pods(namespace=serving, labels=SMOKE_LABELS)
    hub = Pods(namespace=weights, labels=HUB_LABELS)
    store = Pods(namespace=weights, labels=STORE_LABELS)
    staging = Pods(namespace=weights, labels=STAGING_LABELS)
    lws = Pods(namespace=LWS_NAMESPACE, labels=LWS_LABELS)
    way_in, engine = (ROUTER_PORT,), (ENGINE_PORT,)
    return [
        Flow(name="clients-unified", source=Anywhere(), target=picker, ports=way_in, why="the way in"),
        Flow(name="clients-disaggregated", source=Anywhere(), target=splitter, ports=way_in, why="the way in"),
        Flow(name="smoke-unified", source=smoke, target=picker, ports=way_in, why="the proof that it serves"),
        Flow(name="smoke-disaggregated", source=smoke, target=splitter, ports=way_in, why="the proof that it serves"),
        Flow(
            name="router-unified", source=picker, target=unified, ports=engine, why="requests, and metrics for scores"
        ),
        Flow(name="router-prefill", source=splitter, target=prefill, ports=engine, why="prompts"),
        Flow(name="router-decode", source=splitter, target=decode, ports=engine, why="answers"),
        Flow(
            name="picker-api",
            source=picker,
            target=ApiServer(),
            ports=API_SERVER_PORTS,
            why="it watches its pool's pods",
        ),
        Flow(name="staging-hub", source=staging, target=hub, ports=(HUB_PORT, HUB_BLOB_PORT), why="the model's files"),
        Flow(name="staging-store", source=staging, target=store, ports=(STORE_PORT,), why="their copy"),
        Flow(name="api-lws", source=Anywhere(), target=lws, ports=(WEBHOOK_PORT,), why="admission webhooks"),
        Flow(name="lws-api", source=lws, target=ApiServer(), ports=API_SERVER_PORTS, why="the controller's work"),
    ]
