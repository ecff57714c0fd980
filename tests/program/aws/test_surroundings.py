"""File systems, the way in, managed Prometheus and the alternative control plane, as the engine would be asked to make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
import yaml

from components.aws.cluster import ClusterArgs, PrivateEndpoint
from components.aws.entrance import Entrance, EntranceArgs
from components.aws.file_systems import ElasticFileSystem, ElasticFileSystemArgs, Lustre, LustreArgs
from components.aws.monitoring import ManagedPrometheus, ManagedPrometheusArgs
from components.aws.pulumi_eks_cluster import PulumiEksCluster
from tests.support.recorder import Recording, record


def entrance(*, internal: bool = True, certificate_arn: str | None = None) -> Recording:
    def build() -> None:
        Entrance(
            "entrance",
            args=EntranceArgs(
                vpc_id="vpc-1",
                subnets=("subnet-a", "subnet-b"),
                internal=internal,
                callers=("10.0.0.0/8",),
                port=443 if certificate_arn else 80,
                node_port=30080,
                autoscaling_group="asg-1",
                nodes="sg-nodes",
                idle_seconds=3600,
                drain_seconds=300,
                certificate_arn=certificate_arn,
            ),
        )

    return record(build)


def test_the_balancer_is_internal_and_its_targets_are_the_nodes_of_the_group() -> None:
    recording = entrance()
    balancer = recording.one("LoadBalancer").inputs
    assert (balancer["loadBalancerType"], balancer["internal"]) == ("network", True)
    attachment = recording.one("Attachment").inputs
    assert attachment == {"autoscalingGroupName": "asg-1", "lbTargetGroupArn": "arn:aws:mock:::entrance"}
    assert recording.one("TargetGroup").inputs["port"] == 30080


def test_a_silent_stream_is_not_cut_before_its_time() -> None:
    recording = entrance()
    assert recording.one("Listener").inputs["tcpIdleTimeoutSeconds"] == 3600
    assert recording.one("TargetGroup").inputs["deregistrationDelay"] == 300


def test_only_the_stated_callers_reach_the_balancer_and_it_reaches_nothing_but_the_node_port() -> None:
    recording = entrance()
    caller = recording.one("SecurityGroupIngressRule", "entrance-from-10.0.0.0-8").inputs
    assert (caller["cidrIpv4"], caller["fromPort"], caller["toPort"]) == ("10.0.0.0/8", 80, 80)
    way_out = recording.one("SecurityGroupEgressRule").inputs
    assert (way_out["referencedSecurityGroupId"], way_out["fromPort"], way_out["toPort"]) == ("sg-nodes", 30080, 30080)


def test_with_a_certificate_the_balancer_ends_tls() -> None:
    listener = entrance(certificate_arn="arn:aws:acm:us-west-2:123456789012:certificate/1").one("Listener").inputs
    assert listener["protocol"] == "TLS"
    assert listener["sslPolicy"].startswith("ELBSecurityPolicy-TLS13")
    assert "tcpIdleTimeoutSeconds" not in listener


def lustre() -> Recording:
    def build() -> None:
        Lustre(
            "weights",
            args=LustreArgs(
                vpc_id="vpc-1",
                subnet="subnet-c",
                clients="sg-nodes",
                storage_gib=4800,
                mbps_per_tib=1000,
                bucket="weights-bucket",
                prefix="models",
                path="/models",
            ),
        )

    return record(build)


def test_the_lustre_file_system_is_persistent_current_and_in_the_accelerators_subnet() -> None:
    system = lustre().one("LustreFileSystem").inputs
    assert system["deploymentType"] == "PERSISTENT_2"
    assert system["fileSystemTypeVersion"] == "2.15"
    assert system["subnetIds"] == "subnet-c"
    assert (system["storageCapacity"], system["perUnitStorageThroughput"]) == (4800, 1000)


def test_the_lustre_file_system_is_tied_to_the_bucket_and_takes_its_names_at_once() -> None:
    association = lustre().one("DataRepositoryAssociation").inputs
    assert association["dataRepositoryPath"] == "s3://weights-bucket/models"
    assert association["batchImportMetaDataOnCreate"] is True


@pytest.mark.parametrize("ports", [(988, 988), (1018, 1023)])
def test_lustre_ports_are_open_both_ways_between_servers_and_nodes(ports: tuple[int, int]) -> None:
    rules = [rule.inputs for rule in lustre().of("SecurityGroupIngressRule")]
    ways = {
        (rule["securityGroupId"], rule["referencedSecurityGroupId"])
        for rule in rules
        if (rule["fromPort"], rule["toPort"]) == ports
    }
    servers = "SecurityGroup/weights-lustre"
    assert ways == {(servers, "sg-nodes"), (servers, servers), ("sg-nodes", servers)}


def test_efs_is_encrypted_elastic_and_has_a_mount_target_in_every_zone_of_the_nodes() -> None:
    def build() -> None:
        subnets = {zone: pulumi.Output.from_input(f"subnet-{zone}") for zone in ("us-west-2a", "us-west-2b")}
        ElasticFileSystem("weights", args=ElasticFileSystemArgs(vpc_id="vpc-1", subnets=subnets, clients="sg-nodes"))

    recording = record(build)
    system = recording.one("efs/fileSystem:FileSystem").inputs
    assert (system["encrypted"], system["throughputMode"]) == (True, "elastic")
    assert {target.inputs["subnetId"] for target in recording.of("MountTarget")} == {
        "subnet-us-west-2a",
        "subnet-us-west-2b",
    }
    rule = recording.one("SecurityGroupIngressRule").inputs
    assert (rule["fromPort"], rule["toPort"], rule["referencedSecurityGroupId"]) == (2049, 2049, "sg-nodes")


def test_managed_prometheus_sends_every_alert_to_the_topic() -> None:
    def build() -> None:
        ManagedPrometheus(
            "metrics",
            args=ManagedPrometheusArgs(
                cluster_name="kimi",
                cluster_arn="arn:aws:eks:us-west-2:123456789012:cluster/kimi",
                subnets=("subnet-a", "subnet-b"),
                security_group="sg-nodes",
                scrape_configuration="scrape_configs: []",
                rules={"engine": "groups: []"},
                region="us-west-2",
                alert_topic="arn:aws:sns:us-west-2:123456789012:oncall",
            ),
        )

    recording = record(build)
    definition = yaml.safe_load(recording.one("AlertManagerDefinition").inputs["definition"])
    manager = yaml.safe_load(definition["alertmanager_config"])
    (receiver,) = manager["receivers"]
    assert manager["route"]["receiver"] == receiver["name"]
    assert receiver["sns_configs"][0]["topic_arn"] == "arn:aws:sns:us-west-2:123456789012:oncall"
    assert recording.one("RuleGroupNamespace").inputs["name"] == "engine"
    assert recording.one("Scraper").inputs["source"]["eks"]["subnetIds"] == ["subnet-a", "subnet-b"]


def test_the_pulumi_eks_control_plane_has_the_same_outputs_and_no_default_nodes() -> None:
    seen: dict[str, str] = {}
    # What pulumi-eks answers is a reference to the aws.eks.Cluster that it made.
    made = {
        "name": "kimi",
        "endpoint": "https://api.example",
        "certificateAuthority": {"data": "Q0E="},
        "vpcConfig": {"clusterSecurityGroupId": "sg-cluster"},
    }
    reference = {
        "4dabf18193072939515e22adb298388d": "5cf8f73096256a8f31e491e813e4eb8e",
        "urn": "urn:pulumi:test::llm-serving::pulumi:pulumi:Stack$aws:eks/cluster:Cluster::inner",
        "id": "kimi",
    }

    def outputs(kind: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {"eks:index:Cluster": {"eksCluster": reference}, "aws:eks/cluster:Cluster": made}.get(kind, {})

    def build() -> None:
        inner = aws.eks.Cluster("inner", role_arn="arn:aws:iam::123456789012:role/r", vpc_config={"subnet_ids": []})
        cluster = PulumiEksCluster(
            "cluster",
            args=ClusterArgs(
                name="kimi",
                region="us-west-2",
                account="123456789012",
                kubernetes_version="1.36",
                vpc_id="vpc-1",
                subnets=("subnet-a", "subnet-b"),
                endpoint=PrivateEndpoint(callers=("10.8.0.0/16",)),
            ),
            opts=pulumi.ResourceOptions(depends_on=[inner]),
        )
        known = pulumi.Output.all(cluster.cluster_name, cluster.endpoint, cluster.security_group_id)
        known.apply(lambda all_of: seen.update(zip(("name", "endpoint", "group"), all_of, strict=True)))

    recording = record(build, outputs=outputs)
    asked = recording.one("eks:index:Cluster").inputs
    assert asked["skipDefaultNodeGroup"] is True
    assert asked["endpointPublicAccess"] is False
    assert asked["authenticationMode"] == "API"
    assert seen == {"name": "kimi", "endpoint": "https://api.example", "group": "sg-cluster"}
