"""Requests judged by botocore's service models, and tables judged by the update calls that those models have."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore.model import Shape

from sandbox.clouds.aws import model
from sandbox.clouds.aws.table import AwsTable
from sandbox.clouds.aws.tables import TABLES
from sandbox.clouds.aws.tables.compute import LaunchTemplate
from sandbox.clouds.aws.tables.eks import NodeGroup

GROUP = {
    "clusterName": "kimi",
    "nodegroupName": "accelerators",
    "nodeRole": "arn:aws:iam::123456789012:role/node",
    "subnets": ["subnet-1"],
}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"capacityType": "CAPACITY_BLOK"}, "capacityType"),
        ({"scalingConfig": {"minSize": -1}}, "scalingConfig.minSize"),
        ({"updateConfig": {"maxUnavailable": 0}}, "updateConfig.maxUnavailable"),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, "taints[0].effect"),
        ({"labels": {"a": "x" * 64}}, "labels.a"),
        ({"amiTypo": "x"}, "amiTypo"),
        ({"subnets": "subnet-1"}, "subnets"),
    ],
)
def test_a_request_that_the_model_refuses_is_refused_at_its_path(change: dict[str, Any], path: str) -> None:
    found = [problem.path for problem in model.problems("eks", "CreateNodegroup", {**GROUP, **change})]
    assert found == [path]


def test_a_request_that_the_model_takes_has_no_problem() -> None:
    change = {"capacityType": "CAPACITY_BLOCK", "amiType": "AL2023_x86_64_NVIDIA", "scalingConfig": {"minSize": 0}}
    assert model.problems("eks", "CreateNodegroup", {**GROUP, **change}) == []


def test_every_pattern_of_the_services_in_use_can_be_checked() -> None:
    session = botocore.session.get_session()
    for service in sorted({table.service for table in TABLES}):
        shapes = session.get_service_model(service)
        for name in shapes.shape_names:
            pattern = shapes.shape_for(name).metadata.get("pattern")
            if pattern:
                model.matches(pattern, "")


def test_a_pattern_that_does_not_match_is_a_problem() -> None:
    (found,) = model.problems(
        "efs", "CreateMountTarget", {"FileSystemId": "not an id", "SubnetId": "subnet-0123456789abcdef0"}
    )
    assert found.path == "FileSystemId"


@cache
def calls(table: type[AwsTable]) -> frozenset[str]:
    """Operations that the table's own source names, beside the one that creates."""
    found: set[str] = set()
    for each in table.__mro__:
        if each.__module__.startswith("sandbox.clouds.aws.tables"):
            tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(each)))
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and re.fullmatch(r"[A-Z][A-Za-z]+", node.value)
                ):
                    found |= {node.value, f"{node.value}Ingress", f"{node.value}Egress"}  # the way may be filled in
    operations = botocore.session.get_session().get_service_model(table.service).operation_names
    return frozenset(found & set(operations)) | {table.operation}


def members(shape: Shape | None, depth: int = 4) -> set[str]:
    """Names of all members below a shape, in lower case."""
    if shape is None or depth == 0:
        return set()
    if shape.type_name == "structure":
        return {name.lower() for name in shape.members} | {
            name for inner in shape.members.values() for name in members(inner, depth - 1)
        }
    if shape.type_name == "list":
        return members(shape.member, depth)
    return set()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_what_a_table_changes_in_place_some_call_of_the_model_takes(table: type[AwsTable]) -> None:
    if table is LaunchTemplate:
        pytest.skip("a change makes a new version: the create call's own members")
    updates = calls(table) - {
        name for name in calls(table) if name.startswith(("Create", "Delete", "Describe", "Get", "List"))
    }
    taken = {name for operation in updates for name in members(model.operation(table.service, operation).input_shape)}
    attributes = getattr(table, "attributes", {})
    renamed = {
        "throughputmode": "throughputmode",
        "definition": "data",
        "referencedsecuritygroupid": "referencedgroupid",
        "routes": "destinationcidrblock",
        "ingress": "ippermissions",
        "egress": "ippermissions",
        "enabledclusterlogtypes": "logging",
        "assumerolepolicy": "policydocument",
        "policy": "policydocument" if table.service in ("iam", "ec2") else "policy",
        "vpcid": "vpcid",
        "enablekeyrotation": "keyid",
        "isenabled": "keyid",
        "healthcheck": "healthcheckprotocol",
        "certificatearn": "certificates",
    }
    for part in table.parts:
        for name in part.properties:
            if name in attributes:  # a key and a string in the API
                continue
            last = name.rsplit(".", 1)[-1].lower()
            wanted = {
                last,
                f"{last}s",
                last.removesuffix("s"),
                renamed.get(last, last),
                getattr(table, "names", {}).get(name, last).lower(),
            }
            assert wanted & taken or any(member.endswith(last) for member in taken), (
                f"{name}: {sorted(updates)} take no such thing"
            )


def test_a_node_group_is_replaced_for_what_no_update_call_takes() -> None:
    """terraform-provider-aws, node_group.go: ForceNew."""
    documented = {
        "amiType",
        "capacityType",
        "diskSize",
        "instanceTypes",
        "launchTemplate.id",
        "launchTemplate.name",
        "nodeRoleArn",
        "subnetIds",
    }
    updatable = {name for part in NodeGroup.parts for name in part.properties}
    assert not {name for name in documented if name in updatable or name.partition(".")[0] in updatable}
