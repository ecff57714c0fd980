"""Network, bucket, control plane, add-ons and system nodes, as the engine would be asked to make them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from components.aws.addons import AFTER_NODES, BEFORE_NODES, Addons, AddonsArgs
from components.aws.bucket import WeightsBucket, WeightsBucketArgs
from components.aws.cluster import Cluster, ClusterArgs, PrivateEndpoint, PublicEndpoint, kubeconfig
from components.aws.documents import read_bucket, write_bucket
from components.aws.identity import PodRole, PodRoleArgs
from components.aws.network import Network, NetworkArgs
from components.aws.nodes import NodeRole, SystemNodes, SystemNodesArgs
from sandbox.clouds.aws import mapping, model
from sandbox.clouds.aws.tables.s3 import Encryption
from tests.support.recorder import Recording, record

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def outputs(kind: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
        "aws:eks/nodeGroup:NodeGroup": {"resources": [{"autoscalingGroups": [{"name": "asg-1"}]}]},
        "aws:eks/cluster:Cluster": {
            "endpoint": "https://api.example",
            "certificateAuthority": {"data": "Q0E="},
            "vpcConfig": {"clusterSecurityGroupId": "sg-cluster"},
        },
    }.get(kind, {})


def network() -> Recording:
    def build() -> None:
        Network("network", args=NetworkArgs(region="us-west-2", cidr="10.64.0.0/16", zones=ZONES, cluster_name="kimi"))

    return record(build)


def cluster(endpoint: PrivateEndpoint | PublicEndpoint, administrators: tuple[str, ...] = ()) -> Recording:
    def build() -> None:
        Cluster(
            "cluster",
            args=ClusterArgs(
                name="kimi",
                region="us-west-2",
                account="123456789012",
                kubernetes_version="1.36",
                vpc_id="vpc-1",
                subnets=("subnet-a", "subnet-b"),
                endpoint=endpoint,
                administrators=administrators,
            ),
        )

    return record(build, outputs=outputs)


def test_every_zone_has_a_private_subnet_whose_traffic_leaves_by_its_own_nat_gateway() -> None:
    recording = network()
    for zone in ZONES:
        table = recording.one("RouteTable", f"network-private-{zone}").inputs
        assert table["routes"] == [{"cidrBlock": "0.0.0.0/0", "natGatewayId": f"NatGateway/network-nat-{zone}"}]
        association = recording.one("RouteTableAssociation", f"network-private-{zone}").inputs
        assert association["subnetId"] == f"Subnet/network-private-{zone}"
        assert recording.one("NatGateway", f"network-nat-{zone}").inputs["subnetId"] == f"Subnet/network-public-{zone}"


def test_no_subnet_hands_out_public_addresses() -> None:
    assert {subnet.inputs["mapPublicIpOnLaunch"] for subnet in network().of("Subnet")} == {False}


def test_the_checkpoint_is_read_through_an_s3_gateway_endpoint_from_every_private_subnet() -> None:
    endpoint = network().one("VpcEndpoint").inputs
    assert endpoint["serviceName"] == "com.amazonaws.us-west-2.s3"
    assert endpoint["vpcEndpointType"] == "Gateway"
    assert sorted(endpoint["routeTableIds"]) == [f"RouteTable/network-private-{zone}" for zone in ZONES]


def bucket(*, keep: bool = True, kms_key: str | None = None) -> Recording:
    def build() -> None:
        WeightsBucket("weights", args=WeightsBucketArgs(keep=keep, kms_key=kms_key))

    return record(build)


def test_the_weights_bucket_is_protected_and_left_behind_by_a_destroy() -> None:
    made = bucket().one("s3/bucket:Bucket")
    assert made.protect
    assert made.retain_on_delete
    assert made.inputs["forceDestroy"] is False


def test_a_bucket_that_is_not_to_be_kept_goes_with_its_objects() -> None:
    made = bucket(keep=False).one("s3/bucket:Bucket")
    assert not made.protect
    assert not made.retain_on_delete
    assert made.inputs["forceDestroy"] is True


def test_the_weights_bucket_is_closed_encrypted_versioned_and_refuses_plain_http() -> None:
    recording = bucket()
    closed = recording.one("BucketPublicAccessBlock").inputs
    assert [
        closed[key] for key in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    ] == 4 * [True]
    assert recording.one("BucketVersioning").inputs["versioningConfiguration"] == {"status": "Enabled"}
    rules = recording.one("BucketServerSideEncryptionConfiguration").inputs["rules"]
    assert rules == [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}]
    (statement,) = json.loads(recording.one("BucketPolicy").inputs["policy"])["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_what_waits_for_the_bucket_waits_for_its_encryption_too() -> None:
    waits = bucket().one("BucketPolicy").depends_on
    for setting in ("BucketServerSideEncryptionConfiguration", "BucketPublicAccessBlock"):
        assert any(setting in urn for urn in waits), waits


KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_a_key_of_ones_own_encrypts_the_weights_in_a_request_that_s3s_model_takes() -> None:
    rules = bucket(kms_key=KEY).one("BucketServerSideEncryptionConfiguration").inputs["rules"]
    shape = model.operation("s3", "PutBucketEncryption").input_shape.members[Encryption.member]
    asked = {"Bucket": "b", Encryption.member: mapping.request({"rules": rules}, shape, names=Encryption.names)}
    assert asked == {
        "Bucket": "b",
        "ServerSideEncryptionConfiguration": {
            "Rules": [
                {
                    "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
                    "BucketKeyEnabled": True,
                }
            ]
        },
    }
    assert model.problems("s3", "PutBucketEncryption", asked) == []


def test_pods_use_the_buckets_key_as_far_as_their_work_needs_and_through_s3_only() -> None:
    # To read: Decrypt. To upload in parts: GenerateDataKey, and Decrypt to put the parts together (S3 guide, mpuoverview).
    for text, actions in (
        (read_bucket("arn:aws:s3:::b", KEY), ["kms:Decrypt"]),
        (write_bucket("arn:aws:s3:::b", KEY), ["kms:Decrypt", "kms:GenerateDataKey"]),
    ):
        (found,) = [each for each in json.loads(text)["Statement"] if each["Action"][0].startswith("kms:")]
        assert (found["Action"], found["Resource"]) == (actions, [KEY])
        assert found["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-west-2.amazonaws.com"}}


def test_staging_may_delete_its_own_notes_only_and_reading_may_not_write() -> None:
    arn = "arn:aws:s3:::b"
    deleting = [
        statement["Resource"]
        for statement in json.loads(write_bucket(arn))["Statement"]
        if "Delete" in str(statement["Action"])
    ]
    assert [str(resource).strip("[]'") for resource in deleting] == [f"{arn}/*/.staging/*"]
    for text, forbidden in ((read_bucket(arn), "Put"), (read_bucket(arn), "Delete")):
        actions = [action for statement in json.loads(text)["Statement"] for action in statement["Action"]]
        assert not [action for action in actions if forbidden in action or "*" in action]


def test_by_default_the_api_server_answers_inside_the_vpc_and_to_the_stated_networks_only() -> None:
    recording = cluster(PrivateEndpoint(callers=("10.8.0.0/16",)))
    config = recording.one("eks/cluster:Cluster").inputs["vpcConfig"]
    assert config == {
        "subnetIds": ["subnet-a", "subnet-b"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": False,
    }
    rule = recording.one("SecurityGroupIngressRule").inputs
    assert (rule["securityGroupId"], rule["cidrIpv4"], rule["fromPort"], rule["toPort"]) == (
        "sg-cluster",
        "10.8.0.0/16",
        443,
        443,
    )


def test_a_public_api_server_answers_to_the_listed_addresses_and_nodes_keep_the_private_way() -> None:
    config = cluster(PublicEndpoint(callers=("203.0.113.0/24",))).one("eks/cluster:Cluster").inputs["vpcConfig"]
    assert config["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert config["endpointPrivateAccess"] is True


def test_the_control_plane_keeps_all_five_logs_and_encrypts_secrets_with_a_key_that_rotates() -> None:
    recording = cluster(PrivateEndpoint(callers=()))
    made = recording.one("eks/cluster:Cluster").inputs
    assert made["enabledClusterLogTypes"] == ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    key = recording.one("Key")
    assert key.inputs["enableKeyRotation"] is True
    assert made["encryptionConfig"] == {
        "provider": {"keyArn": "arn:aws:mock:::cluster-secrets"},
        "resources": ["secrets"],
    }
    assert recording.one("LogGroup").inputs["name"] == "/aws/eks/kimi/cluster"


def test_access_is_by_entries_only_and_each_administrator_has_one() -> None:
    recording = cluster(PrivateEndpoint(callers=()), administrators=("arn:aws:iam::123456789012:role/platform",))
    assert recording.one("eks/cluster:Cluster").inputs["accessConfig"]["authenticationMode"] == "API"
    assert recording.one("AccessEntry").inputs["principalArn"] == "arn:aws:iam::123456789012:role/platform"
    policy = recording.one("AccessPolicyAssociation").inputs
    assert policy["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert policy["accessScope"] == {"type": "cluster"}


def test_the_kubeconfig_holds_no_credential() -> None:
    text = kubeconfig(
        endpoint="https://api.example", certificate_authority="Q0E=", cluster_name="kimi", region="us-west-2"
    )
    user = json.loads(text)["users"][0]["user"]
    assert list(user) == ["exec"]
    assert user["exec"]["args"][2:4] == ["eks", "get-token"]


def test_the_network_add_ons_come_before_nodes_and_coredns_after_them() -> None:
    assert "vpc-cni" in BEFORE_NODES
    assert "coredns" in AFTER_NODES
    assert not set(BEFORE_NODES) & set(AFTER_NODES)


@pytest.mark.parametrize(
    ("addon", "account", "policy"),
    [
        ("vpc-cni", "aws-node", "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"),
        (
            "aws-ebs-csi-driver",
            "ebs-csi-controller-sa",
            "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy",
        ),
        (
            "aws-efs-csi-driver",
            "efs-csi-controller-sa",
            "arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy",
        ),
    ],
)
def test_an_add_on_that_calls_aws_has_a_role_of_its_own_through_pod_identity(
    addon: str, account: str, policy: str
) -> None:
    recording = record(lambda: _addons(addon))
    made = recording.one("Addon").inputs
    assert [association["serviceAccount"] for association in made["podIdentityAssociations"]] == [account]
    assert recording.one("RolePolicyAttachment").inputs["policyArn"] == policy


def _addons(name: str) -> None:
    Addons("addons", args=AddonsArgs(cluster_name="kimi", partition="aws", names=(name,)))


def test_a_pod_role_trusts_pod_identity_and_nobody_else() -> None:
    def build() -> None:
        PodRole(
            "staging",
            args=PodRoleArgs(
                cluster_name="kimi",
                partition="aws",
                namespace="weights",
                service_account="staging",
                policy=write_bucket("arn:aws:s3:::b"),
            ),
        )

    recording = record(build)
    (statement,) = json.loads(recording.one("iam/role:Role").inputs["assumeRolePolicy"])["Statement"]
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    association = recording.one("PodIdentityAssociation").inputs
    assert (association["namespace"], association["serviceAccount"]) == ("weights", "staging")


def system_nodes() -> Recording:
    def build() -> None:
        SystemNodes(
            "system",
            args=SystemNodesArgs(
                cluster_name="kimi",
                name="kimi-system",
                role=NodeRole("node", partition="aws"),
                subnets=("subnet-a", "subnet-b"),
                instance_type="m7i.4xlarge",
                count=2,
                kubernetes_version="1.36",
                release_version=None,
                disk_gib=100,
            ),
        )

    return record(build, outputs=outputs)


def test_system_nodes_carry_no_taint_so_that_coredns_can_run_there() -> None:
    assert "taints" not in system_nodes().one("NodeGroup").inputs


def test_nodes_keep_credentials_from_requests_without_a_token_and_encrypt_their_disks() -> None:
    template = system_nodes().one("LaunchTemplate").inputs
    assert template["metadataOptions"]["httpTokens"] == "required"
    assert template["blockDeviceMappings"][0]["ebs"]["encrypted"] == "true"


def test_node_groups_go_before_the_policies_of_their_role() -> None:
    attachments = {
        urn.rpartition("::")[2] for urn in system_nodes().one("NodeGroup").depends_on if "RolePolicyAttachment" in urn
    }
    assert attachments == {
        f"node-{policy}"
        for policy in (
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryPullOnly",
            "AmazonSSMManagedInstanceCore",
        )
    }
