"""Launch-template values: the NodeConfig document and the network interfaces."""

from __future__ import annotations

import base64
from email import message_from_bytes

import yaml

from components.aws.user_data import network_interfaces, nodeadm_user_data


def test_user_data_is_a_mime_document_with_one_nodeadm_part() -> None:
    message = message_from_bytes(base64.b64decode(nodeadm_user_data()))
    assert message.get_content_type() == "multipart/mixed"
    (part,) = message.get_payload()
    assert part.get_content_type() == "application/node.eks.aws"


def test_nodeadm_builds_a_raid0_of_the_instance_store_and_gets_no_cluster_section_of_ours() -> None:
    (part,) = message_from_bytes(base64.b64decode(nodeadm_user_data())).get_payload()
    config = yaml.safe_load(part.get_payload())
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"]["instance"]["localStorage"] == {"strategy": "RAID0"}
    assert "cluster" not in config["spec"]


def test_one_node_has_only_the_ena_interface_of_card_zero() -> None:
    assert network_interfaces(efa_cards=(), security_groups=["sg-1"]) == [
        {
            "network_card_index": 0,
            "device_index": 0,
            "interface_type": "interface",
            "delete_on_termination": "true",
            "security_groups": ["sg-1"],
        }
    ]


def test_more_nodes_have_seventeen_cards_of_which_sixteen_are_efa_only_at_device_index_zero() -> None:
    interfaces = network_interfaces(efa_cards=range(1, 17), security_groups=["sg-1"])
    assert [interface["network_card_index"] for interface in interfaces] == list(range(17))
    assert {interface["device_index"] for interface in interfaces} == {0}
    assert [interface["interface_type"] for interface in interfaces] == ["interface"] + 16 * ["efa-only"]


def test_every_interface_carries_the_security_groups_and_none_a_subnet() -> None:
    interfaces = network_interfaces(efa_cards=range(1, 17), security_groups=["sg-1", "sg-2"])
    assert all(interface["security_groups"] == ["sg-1", "sg-2"] for interface in interfaces)
    assert not any("subnet_id" in interface for interface in interfaces)
