"""The Jobs, the DaemonSet and the volumes' Jobs, as the API server would be asked to make them."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.weights.node_copy import NodeCopy, NodeCopyArgs
from components.weights.program import Installed, Limits, Prepared, Runtime, SecretKey, Store
from components.weights.staging import cli
from components.weights.staging.errors import RETRY
from components.weights.staging.manifest import Source, parse_source
from components.weights.staging_job import StagingJob, StagingJobArgs
from components.weights.volume_job import VolumeJob, VolumeJobArgs
from tests.support.recorder import Recording, record

SOURCE = Source(repo="owner/model", revision="ab" * 20, ignore=("*.md",))
STORE = Store(url="s3://bucket/models", environment={"AWS_REGION": "us-west-2"})
LABELS = {"app.kubernetes.io/name": "weights", "team": "ml"}
PREPARED = Prepared(image="registry.example/staging@sha256:00")


def staging(*, runtime: Runtime = PREPARED, token: SecretKey | None = None, **more: Any) -> Recording:
    args = StagingJobArgs(
        namespace="weights",
        labels=LABELS,
        sources=[SOURCE],
        store=STORE,
        runtime=runtime,
        service_account="stager",
        token=token,
        seconds=7200,
        **more,
    )
    return record(lambda: (StagingJob("stage-weights", args=args), None)[1])


def node_copy(*, seconds: int | None = 3600) -> Recording:
    args = NodeCopyArgs(
        namespace="weights",
        labels=LABELS,
        sources=[SOURCE],
        store=STORE,
        runtime=PREPARED,
        service_account="reader",
        disk="/mnt/k8s-disks/0",
        folder="weights",
        seconds=seconds,
        node_selector={"pool": "accelerators"},
    )
    return record(lambda: (NodeCopy("node-weights", args=args), None)[1])


def pod(made: Recording, kind: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = made.one(kind, name).inputs["spec"]["template"]["spec"]
    return spec


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def test_only_the_staging_job_sees_the_hubs_token() -> None:
    made = staging(token=SecretKey(name="hub", key="token"))
    (stage,) = pod(made, "v1:Job", "stage-weights")["containers"]
    (verify,) = pod(made, "v1:Job", "stage-weights-verify")["containers"]
    assert variables(stage)["HF_TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}
    assert "HF_TOKEN" not in variables(verify)
    (hydrate,) = pod(node_copy(), "DaemonSet", "node-weights")["containers"]
    assert "HF_TOKEN" not in variables(hydrate)


def test_the_copy_is_verified_by_a_second_job_that_waits_for_the_first() -> None:
    made = staging()
    assert any(
        "stage-weights" in urn.rpartition("::")[2] for urn in made.one("v1:Job", "stage-weights-verify").depends_on
    )


def test_what_reads_the_copy_gets_the_address_from_the_verification() -> None:
    addresses: list[str] = []

    def build() -> None:
        made = StagingJob(
            "stage-weights",
            args=StagingJobArgs(
                namespace="weights",
                labels=LABELS,
                sources=[SOURCE],
                store=STORE,
                runtime=PREPARED,
                service_account="stager",
                seconds=7200,
            ),
        )
        made.verified.apply(addresses.append)
        pulumi.export("depends", made.verified.resources())

    record(build)
    assert addresses == ["s3://bucket/models"]


def test_a_failure_counts_once_and_for_all_unless_another_try_may_mend_it() -> None:
    spec = staging().one("v1:Job", "stage-weights").inputs["spec"]
    again, disruption = spec["podFailurePolicy"]["rules"]
    # The provider's await knows the reasons BackoffLimitExceeded and DeadlineExceeded, and no other
    # (cloud-ready-checks 1.3.0, pkg/kubernetes/job/check.go): FailJob would leave `up` waiting.
    assert spec["backoffLimit"] == 0
    assert again == {
        "action": "Ignore",
        "onExitCodes": {"containerName": "stage", "operator": "In", "values": sorted([*RETRY, 137])},
    }
    assert disruption["action"] == "Ignore"


def test_the_job_may_take_what_the_plan_says() -> None:
    assert staging().one("v1:Job", "stage-weights").inputs["spec"]["activeDeadlineSeconds"] == 7200


def test_a_changed_job_replaces_the_old_one_first() -> None:
    assert staging().one("v1:Job", "stage-weights").delete_before_replace


def test_without_an_image_of_ones_own_packages_are_installed_by_hash_alone() -> None:
    spec = pod(staging(runtime=Installed(image="python@sha256:00")), "v1:Job", "stage-weights")
    (install,) = spec["initContainers"]
    assert "--require-hashes" in install["command"]
    assert "--no-deps" in install["command"]
    lock = staging().one("ConfigMap").inputs["data"]["requirements.txt"]
    packages = [line for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
    assert packages
    assert lock.count("--hash=sha256:") >= len(packages)
    assert all("==" in package for package in packages)


def test_with_an_image_of_ones_own_nothing_is_installed() -> None:
    assert pod(staging(), "v1:Job", "stage-weights")["initContainers"] == []


@pytest.mark.parametrize("kind", ["stage-weights", "stage-weights-verify"])
def test_pods_are_locked_down(kind: str) -> None:
    spec = pod(staging(runtime=Installed(image="python@sha256:00")), "v1:Job", kind)
    assert spec["automountServiceAccountToken"] is False
    for container in [*spec["initContainers"], *spec["containers"]]:
        security = container["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"]
        assert security["runAsNonRoot"]
        assert not security["allowPrivilegeEscalation"]


def test_the_containers_memory_holds_the_buffers() -> None:
    (stage,) = pod(staging(limits=Limits(memory_mib=512)), "v1:Job", "stage-weights")["containers"]
    assert variables(stage)["STAGING_MEMORY_MIB"] == "512"
    assert int(stage["resources"]["limits"]["memory"].removesuffix("Mi")) > 512


def test_the_program_understands_the_variables_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    made = staging()
    (stage,) = pod(made, "v1:Job", "stage-weights")["containers"]
    for name, value in variables(stage).items():
        if isinstance(value, str) and name.startswith("STAGING_"):
            monkeypatch.setenv(name, value)
    options = cli._parser().parse_args(stage["command"][3:])
    assert options.store == "s3://bucket/models"
    assert cli._sources(options) == [SOURCE]
    assert parse_source(str(SOURCE)).prefix == SOURCE.prefix


def test_a_nodes_copy_needs_its_array_and_says_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = pod(node_copy(), "DaemonSet", "node-weights")
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "node"]
    assert volume["hostPath"] == {"path": "/mnt/k8s-disks/0", "type": "Directory"}
    (hydrate,) = spec["containers"]
    assert variables(hydrate)["STAGING_DIRECTORY"] == "/node/weights"
    assert hydrate["readinessProbe"]["exec"]["command"][-1] == "verify"
    for name, value in variables(hydrate).items():
        monkeypatch.setenv(name, str(value))
    options = cli._parser().parse_args(["verify"])
    assert str(options.directory) == "/node/weights"


def test_nodes_that_do_not_exist_yet_are_not_waited_for() -> None:
    skip = "pulumi.com/skipAwait"
    assert node_copy(seconds=None).one("DaemonSet").inputs["metadata"]["annotations"][skip] == "true"
    assert skip not in str(node_copy().one("DaemonSet").inputs["metadata"])


@pytest.mark.parametrize(("work", "read_only"), [("hydrate", False), ("verify", True)])
def test_a_shared_volume_is_filled_or_only_read(work: Any, read_only: bool) -> None:
    args = VolumeJobArgs(
        namespace="weights",
        labels=LABELS,
        sources=[SOURCE],
        store=STORE,
        runtime=PREPARED,
        claim="shared",
        work=work,
        seconds=600,
    )
    made = record(lambda: (VolumeJob("fill", args=args), None)[1])
    spec = pod(made, "v1:Job", "fill")
    (claim,) = [volume for volume in spec["volumes"] if volume["name"] == "volume"]
    assert claim["persistentVolumeClaim"] == {"claimName": "shared", "readOnly": read_only}
    (container,) = spec["containers"]
    assert container["command"][3:] == (["hydrate"] if work == "hydrate" else ["verify", "--full"])


def test_names_and_labels_are_the_given_ones() -> None:
    for resource in [*staging().resources, *node_copy().resources]:
        if not resource.custom:
            continue
        metadata = resource.inputs["metadata"]
        assert metadata["name"]
        assert metadata["namespace"] == "weights"
        assert metadata["labels"] == LABELS
