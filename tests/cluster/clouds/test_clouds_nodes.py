"""Node groups of the simulated AWS on a real control plane: nodes, GPUs in ResourceSlices, and what scaling does to them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.hardware import P6_B300
from sandbox.clouds.aws import command_line
from sandbox.clouds.aws.cloud import Aws
from sandbox.clouds.clock import Clock
from sandbox.clouds.faults import Faults
from sandbox.cluster import Layout, Profile
from tests.support.cluster import get, started
from tests.support.simulated_aws import NOW, REGION, cluster

BLOCK = "cr-0123456789abcdef0"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Aws, Layout, Path]]:
    state = tmp_path_factory.mktemp("aws")
    block = {
        "id": BLOCK,
        "instanceType": P6_B300.name,
        "availabilityZone": "us-west-2c",
        "count": 2,
        "start": "2026-12-03T11:30:00Z",
        "end": "2026-12-17T11:30:00Z",
    }
    (state / "capacity-blocks.json").write_text(json.dumps([block]))
    with started(state / "cluster", profile=Profile.CONTROL_PLANE) as layout:
        Clock(state).set(NOW)
        aws = Aws(state=state, clock=Clock(state), faults=Faults(None, state=state), kubeconfig=layout.kubeconfig)
        aws.configure({"region": REGION})
        made = cluster(aws)
        data = {
            "InstanceType": P6_B300.name,
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
        }
        template = aws.call(
            "ec2", "CreateLaunchTemplate", region=REGION, LaunchTemplateName="a", LaunchTemplateData=data
        )
        common = {"region": REGION, "clusterName": "kimi", "nodeRole": made["node_role"]}
        aws.call(
            "eks",
            "CreateNodegroup",
            nodegroupName="accelerators",
            subnets=[made["subnets"]["us-west-2c"]],
            scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 1},
            launchTemplate={"id": template["LaunchTemplate"]["LaunchTemplateId"]},
            capacityType="CAPACITY_BLOCK",
            labels={"llm-serving/pool": "accelerators"},
            taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
            **common,
        )
        aws.call(
            "eks",
            "CreateNodegroup",
            nodegroupName="system",
            subnets=list(made["subnets"].values()),
            scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 2},
            instanceTypes=["m7i.4xlarge"],
            **common,
        )
        yield aws, layout, state
        aws.api.close()


def nodes(layout: Layout, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(layout, "nodes", f"--selector=eks.amazonaws.com/nodegroup={group}")["items"]
    return found


def test_the_accelerator_node_offers_what_the_real_one_does(place: tuple[Aws, Layout, Path]) -> None:
    _, layout, _ = place
    (node,) = nodes(layout, "accelerators")
    labels = node["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "p6-b300.48xlarge"
    assert labels["topology.kubernetes.io/zone"] == "us-west-2c"
    assert labels["nvidia.com/gpu.present"] == "true"
    assert {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"} in node["spec"]["taints"]
    # karpenter-provider-aws, instance types: p6-b300.48xlarge
    assert node["status"]["allocatable"]["cpu"] == "191450m"
    assert node["status"]["allocatable"]["pods"] == "198"
    assert node["status"]["allocatable"]["vpc.amazonaws.com/efa"] == "16"


def test_eight_gpus_are_published_with_the_drivers_attributes(place: tuple[Aws, Layout, Path]) -> None:
    _, layout, _ = place
    (node,) = nodes(layout, "accelerators")
    (found,) = get(layout, "resourceslices")["items"]
    assert (found["spec"]["driver"], found["spec"]["nodeName"]) == ("gpu.nvidia.com", node["metadata"]["name"])
    assert len(found["spec"]["devices"]) == 8
    device = found["spec"]["devices"][0]
    assert device["attributes"]["architecture"] == {"string": "Blackwell"}
    assert device["attributes"]["cudaComputeCapability"] == {"version": "10.3.0"}
    assert device["capacity"]["memory"]["value"] == "275040Mi"


def test_system_nodes_are_spread_over_zones_and_bear_no_taint(place: tuple[Aws, Layout, Path]) -> None:
    _, layout, _ = place
    found = nodes(layout, "system")
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in found}) == 2
    assert [
        taint for node in found for taint in node["spec"].get("taints", []) if "not-ready" not in taint["key"]
    ] == []


def test_the_clusters_endpoint_is_the_control_planes(place: tuple[Aws, Layout, Path]) -> None:
    aws, layout, _ = place
    told = aws.call("eks", "DescribeCluster", region=REGION, name="kimi")["cluster"]
    assert told["endpoint"] == layout.server


def test_the_command_that_a_kubeconfig_runs_hands_out_a_credential_that_the_control_plane_takes(
    place: tuple[Aws, Layout, Path], tmp_path: Path
) -> None:
    aws, layout, _ = place
    command_line.install(tmp_path / "bin", kubeconfig=layout.kubeconfig)
    told = aws.call("eks", "DescribeCluster", region=REGION, name="kimi")["cluster"]
    from components.aws.cluster import kubeconfig
    from sandbox.toolchain import tool

    config = tmp_path / "kubeconfig"
    authority = told["certificateAuthority"]["data"]
    config.write_text(
        kubeconfig(endpoint=told["endpoint"], certificate_authority=authority, cluster_name="kimi", region=REGION)
    )
    asked = subprocess.run(
        [str(tool("kube")), "kubectl", "--kubeconfig", str(config), "get", "namespace", "default"],
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr


def test_scaling_and_deletion_take_nodes_and_their_gpus_along(place: tuple[Aws, Layout, Path]) -> None:
    aws, layout, _ = place
    where = {"region": REGION, "clusterName": "kimi", "nodegroupName": "accelerators"}
    aws.call("eks", "UpdateNodegroupConfig", scalingConfig={"desiredSize": 2}, **where)
    assert len(nodes(layout, "accelerators")) == 2
    assert len(get(layout, "resourceslices")["items"]) == 2
    aws.call("eks", "DeleteNodegroup", **where)
    assert nodes(layout, "accelerators") == []
    assert get(layout, "resourceslices")["items"] == []
