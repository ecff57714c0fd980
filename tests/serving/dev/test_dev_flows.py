"""The flow table, tried out between real pods: what it lists gets through, everything else is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catalog.artifacts import PYTHON
from planning.dev import plan_dev
from planning.flows import Anywhere, ApiServer, Flow, Pods
from planning.settings import load
from planning.settings.dev import Dev as DevSettings
from sandbox.cluster import Layout
from sandbox.images import MIRROR
from sandbox.toolchain import tool
from tests.support.cluster import get, run_python
from tests.support.dev import Dev, dev_config

OUTSIDE = "default"
"""A namespace that is not ours: nothing keeps its pods from calling anyone."""

SECONDS = 60
"""Within which a new pod's rules are in force; usually two or three."""

TRY = """
import json, socket, time
from concurrent.futures import ThreadPoolExecutor
targets, expected, end = json.loads({targets!r}), json.loads({expected!r}), time.monotonic() + {seconds}
def opens(address):
    try:
        socket.create_connection(tuple(address), timeout=2).close()
        return True
    except OSError:
        return False
while True:
    with ThreadPoolExecutor(len(targets)) as pool:
        found = dict(zip(targets, pool.map(opens, targets.values())))
    if found == expected or time.monotonic() > end:
        break
    time.sleep(0.5)
print(json.dumps(found))
"""


def planned(dev: Dev) -> tuple[Flow, ...]:
    settings = load(dev_config(dev.layout, dev.stack.directory / "artifacts"))
    assert isinstance(settings, DevSettings)
    return plan_dev(settings).flows


def probe(name: str, *, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    """A pod that looks like another one to policies, and to no Service: it is never ready."""
    container = {
        "name": "probe",
        "image": PYTHON.at(MIRROR),
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "readinessProbe": {"exec": {"command": ["false"]}},
        "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, "probe": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def kubectl(layout: Layout, *arguments: str, stdin: str | None = None) -> str:
    command = [str(tool("kube")), "kubectl", f"--kubeconfig={layout.kubeconfig}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def key(pods: Pods) -> tuple[str, tuple[tuple[str, str], ...]]:
    return pods.namespace, tuple(sorted(pods.labels.items()))


@pytest.fixture(scope="module")
def sources(dev: Dev) -> Iterator[dict[str, Pods]]:
    """A probe for each kind of pod in the table, and two strangers; by name."""
    kinds = {key(pods): pods for flow in planned(dev) for pods in (flow.source, flow.target) if isinstance(pods, Pods)}
    named = {f"probe-{n}": pods for n, pods in enumerate(kinds.values())}
    serving = next(pods.namespace for pods in kinds.values() if pods.labels.get("llm-d.ai/role") == "unified")
    named["stranger-inside"] = Pods(namespace=serving, labels={"who": "stranger"})
    named["stranger-outside"] = Pods(namespace=OUTSIDE, labels={"who": "stranger"})
    manifests = [probe(name, namespace=pods.namespace, labels=pods.labels) for name, pods in named.items()]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    kubectl(dev.layout, "apply", "--filename=-", stdin=document)
    try:
        for name, pods in named.items():
            kubectl(
                dev.layout,
                "wait",
                f"pod/{name}",
                f"--namespace={pods.namespace}",
                "--for=jsonpath={.status.phase}=Running",
                "--timeout=120s",
            )
        yield named
    finally:
        kubectl(dev.layout, "delete", "--wait=true", "--filename=-", stdin=document)


def targets(dev: Dev) -> dict[str, tuple[Pods | ApiServer, int, str]]:
    """Every target of the table: its name → who it is, the port, and the address of one such pod."""
    found: dict[str, tuple[Pods | ApiServer, int, str]] = {}
    for flow in planned(dev):
        if isinstance(flow.target, ApiServer):
            service = get(dev.layout, "service", "kubernetes", "--namespace=default")
            found["api"] = (flow.target, 443, service["spec"]["clusterIP"])
            continue
        selector = ",".join(f"{name}={value}" for name, value in flow.target.labels.items())
        items = get(dev.layout, "pods", f"--namespace={flow.target.namespace}", f"--selector={selector},!probe")[
            "items"
        ]
        for port in flow.ports:
            found[f"{selector}:{port}"] = (flow.target, port, items[0]["status"]["podIP"])
    return found


def allowed(source: Pods, target: Pods | ApiServer, port: int, flows: tuple[Flow, ...]) -> bool:
    """What the table says. A pod of ours needs a row that names it; who is not ours needs a row for anyone."""
    for flow in flows:
        named = isinstance(flow.source, Pods) and key(flow.source) == key(source)
        anyone = isinstance(flow.source, Anywhere) and source.namespace == OUTSIDE
        if flow.target == target and (isinstance(target, ApiServer) or port in flow.ports) and (named or anyone):
            return True
    return isinstance(target, ApiServer) and source.namespace == OUTSIDE


def test_every_pair_of_pods_can_talk_exactly_when_the_table_lists_it(dev: Dev, sources: dict[str, Pods]) -> None:
    flows, reached = planned(dev), targets(dev)
    addresses = {target: (address, port) for target, (_, port, address) in reached.items()}

    def tried(name: str) -> tuple[dict[str, bool], dict[str, bool]]:
        source = sources[name]
        expected = {target: allowed(source, who, port, flows) for target, (who, port, _) in reached.items()}
        return expected, tried_from(dev.layout, name, source.namespace, addresses, expected)

    with ThreadPoolExecutor(4) as pool:
        results = dict(zip(sources, pool.map(tried, sources), strict=True))
    wrong = {
        f"{name} {sources[name].labels} → {target}": found[target]
        for name, (expected, found) in results.items()
        for target in reached
        if found[target] != expected[target]
    }
    assert wrong == {}
    # Each target was reached by someone: what is refused elsewhere is not merely closed.
    assert {target for _, found in results.values() for target in reached if found[target]} == set(reached)


def tried_from(
    layout: Layout, pod: str, namespace: str, addresses: dict[str, tuple[str, int]], expected: dict[str, bool]
) -> dict[str, bool]:
    """Which addresses open from a pod, once that is as expected or SECONDS have passed."""
    program = TRY.format(targets=json.dumps(addresses), expected=json.dumps(expected), seconds=SECONDS)
    done = run_python(layout, pod, program, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_who_is_not_ours_reaches_the_routers_and_nothing_else_of_ours(dev: Dev, sources: dict[str, Pods]) -> None:
    """The sentence that matters most, without the table."""
    ours = {
        f"{pod['metadata']['name']}:{port}": (pod["status"]["podIP"], port)
        for namespace in ("llm-serving", "llm-serving-weights")
        for pod in get(dev.layout, "pods", f"--namespace={namespace}", "--selector=!probe")["items"]
        if pod["status"]["phase"] == "Running"
        for container in pod["spec"]["containers"]
        for port in [entry["containerPort"] for entry in container.get("ports", [])]
    }
    expected = {name: name.endswith(":8081") and "router" in name for name in ours}
    found = tried_from(dev.layout, "stranger-outside", OUTSIDE, ours, expected)
    assert {name for name, is_open in found.items() if is_open} == {name for name, right in expected.items() if right}
    assert sum(found.values()) == 2
