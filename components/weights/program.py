"""How the staging program gets into a pod: its text from a ConfigMap, its packages from an image or a verified install."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.weights.staging.manifest import Source

PROGRAM = Path(__file__).parent / "staging"
REQUIREMENTS = "requirements.txt"
PROGRAM_MOUNT = "/program"
PACKAGES_MOUNT = "/packages"
USER = 65532
INTERPRETER_MIB = 256
"""What a run takes beside its buffers: interpreter and libraries (about 100 MiB, benchmarks/staging.py), and room."""
INSTALL_MIB = 512


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An image that has the packages of staging/requirements.txt: Containerfile makes one."""

    image: str


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A plain Python image; an init container installs the packages, each refused unless it has the hash in the lock.

    index_url: a package index of one's own; unset, the image's default.
    """

    image: str
    index_url: str | None = None


Runtime = Prepared | Installed


@dataclass(frozen=True, kw_only=True)
class SecretKey:
    """A key of a Secret that exists in the namespace."""

    name: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the verified copies are. url: s3://BUCKET/BASE or gs://BUCKET/BASE.

    environment: what the store's client needs, such as AWS_REGION or AWS_ENDPOINT_URL_S3. credentials: a Secret whose keys are
    variables (AWS_ACCESS_KEY_ID, …); None where the service account has the rights.
    """

    url: pulumi.Input[str]
    environment: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    credentials: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may take. cpu: cores requested. memory_mib: of buffers; the container's limit is a little more."""

    cpu: str = "2"
    memory_mib: int = 768
    parallel_files: int = 8
    connections: int = 16


def program_text() -> dict[str, str]:
    """The program's files and its lock, by name."""
    files = [*sorted(PROGRAM.glob("*.py")), PROGRAM / REQUIREMENTS]
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def program_digest() -> str:
    """Changes with the program: what runs it is then made anew."""
    return hashlib.sha256(json.dumps(program_text(), sort_keys=True).encode()).hexdigest()


def program_config_map(
    name: str, *, namespace: pulumi.Input[str], labels: Mapping[str, str], opts: pulumi.ResourceOptions
) -> k8s.core.v1.ConfigMap:
    """The program as a ConfigMap, readable by whoever wonders what ran."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return k8s.core.v1.ConfigMap(name, metadata=metadata, data=program_text(), opts=opts)


def sources_json(sources: Sequence[Source]) -> str:
    """The sources as the program's variable has them."""
    return json.dumps(
        [
            {"repo": source.repo, "revision": source.revision, "allow": [*source.allow], "ignore": [*source.ignore]}
            for source in sources
        ]
    )


def store_environment(store: Store) -> list[dict[str, Any]]:
    """Variables that tell the program its store."""
    return variables({"STAGING_STORE": store.url, **store.environment})


def limit_environment(limits: Limits) -> list[dict[str, Any]]:
    """Variables that tell the program its limits."""
    return variables(
        {
            "STAGING_MEMORY_MIB": str(limits.memory_mib),
            "STAGING_PARALLEL_FILES": str(limits.parallel_files),
            "STAGING_CONNECTIONS": str(limits.connections),
        }
    )


def variables(values: Mapping[str, pulumi.Input[str]]) -> list[dict[str, Any]]:
    """A container's `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


def secret_variable(name: str, secret: SecretKey) -> dict[str, Any]:
    """A variable whose value only the pod sees."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}


def container(
    name: str,
    *,
    runtime: Runtime,
    arguments: Sequence[str],
    environment: Sequence[Mapping[str, Any]],
    limits: Limits,
    credentials: str | None = None,
    mounts: Sequence[Mapping[str, Any]] = (),
    root: bool = False,
) -> dict[str, Any]:
    """A container that runs the program. root: as the owner of a node's disk, still without any capability."""
    memory = f"{limits.memory_mib + INTERPRETER_MIB}Mi"
    made: dict[str, Any] = {
        "name": name,
        "image": runtime.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "staging", *arguments],
        "env": [
            *variables(
                {"PYTHONPATH": f"{PROGRAM_MOUNT}:{PACKAGES_MOUNT}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp"}
            ),
            *limit_environment(limits),
            *environment,
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": limits.cpu, "memory": memory}, "limits": {"memory": memory}},
        "securityContext": _security(root=root),
        "volumeMounts": [*_program_mounts(runtime, packages_read_only=True), *(dict(mount) for mount in mounts)],
    }
    if credentials:
        made["envFrom"] = [{"secretRef": {"name": credentials}}]
    return made


def init_containers(runtime: Runtime) -> list[dict[str, Any]]:
    """The verified install, where the image does not have the packages."""
    if isinstance(runtime, Prepared):
        return []
    index = ["--index-url", runtime.index_url] if runtime.index_url else []
    return [
        {
            "name": "install",
            "image": runtime.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [
                "python3",
                "-m",
                "pip",
                "install",
                "--require-hashes",
                "--only-binary=:all:",
                "--no-deps",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "--no-input",
                f"--target={PACKAGES_MOUNT}",
                f"--requirement={PROGRAM_MOUNT}/staging/{REQUIREMENTS}",
                *index,
            ],
            "env": variables({"HOME": "/tmp", "TMPDIR": PACKAGES_MOUNT}),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "resources": {
                "requests": {"cpu": "500m", "memory": f"{INSTALL_MIB}Mi"},
                "limits": {"memory": f"{INSTALL_MIB}Mi"},
            },
            "securityContext": _security(root=False),
            "volumeMounts": _program_mounts(runtime, packages_read_only=False),
        }
    ]


def volumes(runtime: Runtime, *, config_map: str) -> list[dict[str, Any]]:
    """The volumes that `container` and `init_containers` mount."""
    found: list[dict[str, Any]] = [{"name": "program", "configMap": {"name": config_map}}]
    if isinstance(runtime, Installed):
        found.append({"name": "packages", "emptyDir": {"sizeLimit": f"{INSTALL_MIB}Mi"}})
    return found


def pod(
    *,
    runtime: Runtime,
    config_map: str,
    containers: Sequence[Mapping[str, Any]],
    service_account: str | None,
    node_selector: Mapping[str, str],
    tolerations: Sequence[Mapping[str, Any]],
    restart: str,
    more_volumes: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A pod of the program. Cloud identities bring their own token: the API's is not mounted."""
    return {
        "restartPolicy": restart,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"serviceAccountName": service_account} if service_account else {}),
        "nodeSelector": dict(node_selector),
        "tolerations": [dict(toleration) for toleration in tolerations],
        "initContainers": init_containers(runtime),
        "containers": [dict(found) for found in containers],
        "volumes": [*volumes(runtime, config_map=config_map), *(dict(volume) for volume in more_volumes)],
    }


def _program_mounts(runtime: Runtime, *, packages_read_only: bool) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [{"name": "program", "mountPath": f"{PROGRAM_MOUNT}/staging", "readOnly": True}]
    if isinstance(runtime, Installed):
        mounts.append({"name": "packages", "mountPath": PACKAGES_MOUNT, "readOnly": packages_read_only})
    return mounts


def _security(*, root: bool) -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": not root,
        "runAsUser": 0 if root else USER,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
