"""The whole EKS program under mocks: its shape, its order, and what differs between its variants."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from botocore.utils import should_bypass_proxies

from tests.support.eks import BLOCK, SCHEDULED
from tests.support.eks_program import program
from tests.support.recorder import Recording


@cache
def default() -> tuple[Recording, dict[str, Any]]:
    return program()


def needs(recording: Recording, kind: str, name: str) -> set[str]:
    """All that a resource waits for, directly, through others, or through the component that it is a part of."""

    def key(urn: str) -> str:
        return f"{urn.split('::')[2].rpartition('$')[2]}::{urn.rpartition('::')[2]}"

    by_key = {f"{resource.type}::{resource.name}": resource for resource in recording.resources}
    found: set[str] = set()
    todo = [recording.one(kind, name)]
    while todo:
        resource = todo.pop()
        urns = [*resource.depends_on, *([resource.parent] if resource.parent else [])]
        for near in {key(urn) for urn in urns} - found:
            found.add(near)
            todo += [by_key[near]] if near in by_key else []
    return found


def test_accelerators_are_made_after_the_verified_copy_is_in_the_bucket() -> None:
    waited = needs(default()[0], "eks/nodeGroup:NodeGroup", "accelerators")
    assert "kubernetes:batch/v1:Job::staging-verify" in waited
    assert "kubernetes:batch/v1:Job::staging" in waited


def test_staging_needs_no_accelerator() -> None:
    waited = needs(default()[0], "batch/v1:Job", "staging")
    assert not [name for name in waited if "accelerators" in name]
    pod = default()[0].one("batch/v1:Job", "staging").inputs["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"llm-serving/pool": "system"}


def test_the_engine_waits_for_its_nodes_its_weights_and_the_driver_of_its_gpus() -> None:
    waited = needs(default()[0], "apps/v1:Deployment", "unified")
    for wanted in (
        "aws:eks/nodeGroup:NodeGroup::accelerators",
        "kubernetes:batch/v1:Job::staging-verify",
        "kubernetes:apps/v1:DaemonSet::hydration",
        "kubernetes:helm.sh/v4:Chart::gpus-allocator",
    ):
        assert wanted in waited


def test_the_smoke_check_comes_last() -> None:
    waited = needs(default()[0], "batch/v1:Job", "smoke")
    assert "kubernetes:apps/v1:Deployment::unified" in waited
    assert "kubernetes:apps/v1:Deployment::gateway" in waited


def test_coredns_waits_for_a_node_that_it_can_run_on_and_nodes_wait_for_the_network() -> None:
    recording, _ = default()
    assert "aws:eks/nodeGroup:NodeGroup::system" in needs(recording, "eks/addon:Addon", "addons-coredns")
    assert "aws:eks/addon:Addon::node-addons-vpc-cni" in needs(recording, "eks/nodeGroup:NodeGroup", "system")


def test_pods_that_read_the_bucket_start_after_their_rights_exist() -> None:
    recording, _ = default()
    waited = needs(recording, "batch/v1:Job", "staging")
    assert "aws:eks/podIdentityAssociation:PodIdentityAssociation::staging" in waited
    assert "aws:iam/rolePolicy:RolePolicy::staging" in waited
    assert "aws:eks/podIdentityAssociation:PodIdentityAssociation::hydration" in needs(
        recording, "DaemonSet", "hydration"
    )


def test_the_service_accounts_of_the_pods_are_the_ones_with_the_rights() -> None:
    recording, _ = default()
    granted = {(r.inputs["namespace"], r.inputs["serviceAccount"]) for r in recording.of("PodIdentityAssociation")}
    for kind, name in (("batch/v1:Job", "staging"), ("DaemonSet", "hydration")):
        workload = recording.one(kind, name).inputs
        account = workload["spec"]["template"]["spec"]["serviceAccountName"]
        assert (workload["metadata"]["namespace"], account) in granted


def test_the_pool_lies_in_the_blocks_zone() -> None:
    recording, _ = default()
    assert recording.one("eks/nodeGroup:NodeGroup", "accelerators").inputs["subnetIds"] == [
        "Subnet/network-private-us-west-2c"
    ]


def test_objects_in_the_cluster_go_with_it_but_what_holds_a_disk_is_deleted_by_name() -> None:
    recording, _ = default()
    cluster = next(r for r in recording.resources if r.type == "aws:eks/cluster:Cluster")
    components = [
        r for r in recording.resources if not r.custom and r.type.split(":")[1] in ("serving", "platform", "weights")
    ]
    gone = {r.name: r.deleted_with for r in components}
    assert not gone.pop("prometheus")
    assert len(gone) >= 7
    assert all(urn.endswith(f"::{cluster.name}") for urn in gone.values()), gone


def test_nothing_of_the_stack_lets_the_block_be_bought_or_given_back() -> None:
    assert not default()[0].of("CapacityBlockReservation")


def test_outputs_say_where_to_ask_what_and_whether_it_was_proved() -> None:
    _, outputs = default()
    assert outputs["model"] == "ml-team/kimi-k3-1-pro"
    assert outputs["block"]["drain"] == "2099-12-17 10:30 UTC"
    assert outputs["proof"]["checks"][:2] == ["models", "completion"]


def test_before_the_block_starts_everything_is_made_and_nothing_waits_for_nodes() -> None:
    recording, outputs = program(block=SCHEDULED)
    assert recording.one("eks/nodeGroup:NodeGroup", "accelerators").inputs["scalingConfig"]["desiredSize"] == 0
    assert recording.one("Schedule").inputs["startTime"] == "2099-12-05T11:35:00Z"
    for kind, name in (("DaemonSet", "hydration"), ("apps/v1:Deployment", "unified")):
        assert recording.one(kind, name).inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"
    assert not [r for r in recording.of("batch/v1:Job") if r.name == "smoke"]
    assert outputs["proof"] == {
        "result": "not run",
        "why": "the block starts at 2099-12-05 11:30 UTC; run `up` again then",
    }


def test_a_cluster_whose_pods_never_run_gets_no_smoke_check_and_the_outputs_say_so() -> None:
    recording, outputs = program(proof={"kind": "none", "reason": "nodes are simulated"})
    assert not [r for r in recording.of("batch/v1:Job") if r.name == "smoke"]
    assert outputs["proof"] == {"result": "not run", "why": "nodes are simulated"}


def test_two_nodes_are_two_replicas_with_room_for_efa() -> None:
    recording, _ = program(nodes={"count": 2})
    assert recording.one("eks/nodeGroup:NodeGroup", "accelerators").inputs["scalingConfig"]["maxSize"] == 2
    assert recording.one("apps/v1:Deployment", "unified").inputs["spec"]["replicas"] == 2
    assert len(recording.one("ec2/launchTemplate:LaunchTemplate", "accelerators").inputs["networkInterfaces"]) == 17


def test_growing_inside_a_block_of_two_leaves_the_launch_template_and_so_the_first_node_alone() -> None:
    one = default()[0].one("ec2/launchTemplate:LaunchTemplate", "accelerators").inputs
    assert program(nodes={"count": 2})[0].one("ec2/launchTemplate:LaunchTemplate", "accelerators").inputs == one


@pytest.mark.parametrize(
    ("store", "system", "work"),
    [("fsx", "LustreFileSystem", "verify"), ("efs", "efs/fileSystem:FileSystem", "hydrate")],
)
def test_a_shared_store_is_filled_before_accelerators_and_mounted_by_claim(store: str, system: str, work: str) -> None:
    recording, _ = program(weights={"store": store})
    assert recording.one(system)
    job = recording.one("batch/v1:Job", "weights-volume").inputs["spec"]["template"]["spec"]
    assert job["containers"][0]["command"][3] == work
    assert "kubernetes:batch/v1:Job::weights-volume" in needs(recording, "eks/nodeGroup:NodeGroup", "accelerators")
    pod = recording.one("apps/v1:Deployment", "unified").inputs["spec"]["template"]["spec"]
    assert {"claimName": "weights", "readOnly": True} in [
        volume.get("persistentVolumeClaim") for volume in pod["volumes"]
    ]
    assert not recording.of("DaemonSet") or all(r.name != "hydration" for r in recording.of("DaemonSet"))
    assert f"aws-{store}-csi-driver" in {addon.inputs["addonName"] for addon in recording.of("eks/addon:Addon")}


def test_managed_prometheus_takes_the_place_of_the_one_in_the_cluster() -> None:
    recording, _ = program(monitoring={"kind": "amp", "alert_topic": "arn:aws:sns:us-west-2:123456789012:oncall"})
    assert recording.one("Scraper")
    assert {rules.inputs["name"] for rules in recording.of("RuleGroupNamespace")} == {"engine", "gpu", "capacity-block"}
    assert not recording.of("StatefulSet")


def test_a_mirror_is_used_for_every_image() -> None:
    recording, _ = program(artifacts={"mirror": "registry.internal/copy"})
    images = [
        container["image"]
        for kind in ("apps/v1:Deployment", "DaemonSet", "StatefulSet", "batch/v1:Job")
        for workload in recording.of(kind)
        for part in ("containers", "initContainers")
        for container in workload.inputs["spec"]["template"]["spec"].get(part, [])
    ]
    assert len(images) > 8
    assert [image for image in images if not image.startswith("registry.internal/copy/")] == []


def test_every_pod_runs_where_it_belongs() -> None:
    recording, _ = default()
    pools = {
        workload.name: workload.inputs["spec"]["template"]["spec"].get("nodeSelector", {}).get("llm-serving/pool")
        for kind in ("apps/v1:Deployment", "DaemonSet", "StatefulSet", "batch/v1:Job")
        for workload in recording.of(kind)
    }
    on_accelerators = {name for name, pool in pools.items() if pool == "accelerators"}
    assert on_accelerators == {"unified", "hydration", "gpus-dcgm-exporter"}
    assert set(pools.values()) - {None} == {"accelerators", "system"}


def test_a_block_that_can_not_be_used_stops_the_program_before_any_resource() -> None:
    from planning.findings import ConfigurationError

    for wrong, rule in (
        ({"availability_zone": "us-west-2d"}, "block-zone"),
        ({"state": "expired"}, "block-state"),
        ({"count": 1}, "block-count"),
        ({"instance_type": "p5.48xlarge"}, "block-type"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            program(block={**BLOCK, **wrong}, nodes={"count": 2})
        assert rule in {finding.rule for finding in caught.value.findings}


def test_a_key_of_ones_own_is_the_buckets_and_both_roles_may_use_it() -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    recording, _ = program(weights={"store": "nvme", "kms_key": key})
    (rule,) = recording.one("BucketServerSideEncryptionConfiguration").inputs["rules"]
    assert rule["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key}
    for role in ("staging", "hydration"):
        assert key in recording.one("aws:iam/rolePolicy:RolePolicy", role).inputs["policy"]


def test_every_copy_takes_its_packages_from_an_index_of_ones_own_where_one_is_named() -> None:
    index = "https://packages.corp.example/pypi/simple"
    recording, _ = program(weights={"store": "nvme", "staging": {"package_index": index}})
    specs = [recording.one("batch/v1:Job", "staging"), *recording.of("apps/v1:DaemonSet")]
    installs = [
        container["command"]
        for spec in specs
        for container in spec.inputs["spec"]["template"]["spec"].get("initContainers", [])
        if container["name"] == "install"
    ]
    assert len(installs) == 2
    for command in installs:
        assert command[command.index("--index-url") + 1] == index


def test_the_hub_is_asked_through_the_proxy_and_the_bucket_and_the_credentials_agent_are_not() -> None:
    recording, _ = program(weights={"store": "nvme", "staging": {"proxy": "http://proxy.corp.example:3128"}})
    (container,) = recording.one("batch/v1:Job", "staging").inputs["spec"]["template"]["spec"]["containers"]
    variables = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert variables["HTTPS_PROXY"] == variables["HTTP_PROXY"] == "http://proxy.corp.example:3128"
    for direct in ("https://weights.s3.us-west-2.amazonaws.com", "http://169.254.170.23/v1/credentials"):
        # botocore's own reading of the variable.
        with patch.dict("os.environ", {"no_proxy": variables["NO_PROXY"]}):
            assert should_bypass_proxies(direct)
    with patch.dict("os.environ", {"no_proxy": variables["NO_PROXY"]}):
        assert not should_bypass_proxies("https://huggingface.co/moonshotai")
