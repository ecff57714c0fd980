"""Values of the provider protocol, differences between inputs, and the SDK's own types."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.clouds import sdk
from sandbox.clouds.changes import changes
from sandbox.clouds.wire import SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN, WireError, decode, encode, has_unknown

AWS = "pulumi_aws"
VPC = "aws:ec2/vpc:Vpc"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"

plain = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), plain, max_size=5))
def test_values_come_back_as_they_went(values: dict[str, Any]) -> None:
    assert decode(encode(values)) == (values, frozenset())


def test_an_unknown_and_a_secret_keep_being_such() -> None:
    struct = encode({"a": {"b": [UNKNOWN]}, "c": "x"}, secrets=frozenset({"c"}))
    values, secrets = decode(struct)
    assert has_unknown(values["a"])
    assert values["c"] == "x"
    assert secrets == {"c"}
    assert struct["c"][SIGNATURE_KEY] == SECRET_SIGNATURE


def test_an_asset_is_refused_by_name() -> None:
    with pytest.raises(WireError, match="assets"):
        decode(encode({"a": {SIGNATURE_KEY: "c44067f5952c0a294b673a41bacd8c17"}}))


def test_a_property_that_the_sdk_does_not_know_is_a_problem() -> None:
    (found,) = sdk.problems({"cidrBloc": "10.0.0.0/16"}, sdk.resource(AWS, VPC).inputs)
    assert found.path == "cidrBloc"
    assert "cidrBlock" in found.reason


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"cidrBlock": 10}, "cidrBlock"),
        ({"enableDnsSupport": "true"}, "enableDnsSupport"),
        ({"tags": ["a"]}, "tags"),
        ({"tags": {"a": 1}}, "tags.a"),
    ],
)
def test_a_value_of_another_type_is_a_problem(inputs: dict[str, Any], path: str) -> None:
    assert [found.path for found in sdk.problems(inputs, sdk.resource(AWS, VPC).inputs)] == [path]


def test_nested_types_are_checked_too() -> None:
    inputs = {"networkInterfaces": [{"networkCardIndex": "one"}, {"card": 1}]}
    found = {each.path for each in sdk.problems(inputs, sdk.resource(AWS, TEMPLATE).inputs)}
    assert found == {"networkInterfaces[0].networkCardIndex", "networkInterfaces[1].card"}


def test_what_is_required_and_missing_is_a_problem() -> None:
    found = {each.path for each in sdk.problems({}, sdk.resource(AWS, "aws:eks/nodeGroup:NodeGroup").inputs)}
    assert found == {"clusterName", "nodeRoleArn", "scalingConfig", "subnetIds"}


def test_an_unknown_value_fits_every_type() -> None:
    assert not list(sdk.problems({"cidrBlock": UNKNOWN}, sdk.resource(AWS, VPC).inputs))


def test_a_type_that_the_sdk_lacks_is_refused_by_name() -> None:
    with pytest.raises(sdk.UnknownTokenError, match="ec2/vpx:Vpx"):
        sdk.resource(AWS, "aws:ec2/vpx:Vpx")


def test_a_change_outside_what_can_be_updated_replaces() -> None:
    old = {"launchTemplate": {"id": "lt-1", "version": "1"}, "labels": {"a": "1"}}
    new = {"launchTemplate": {"id": "lt-2", "version": "2"}, "labels": {"a": "2"}}
    found = {
        change.path: change.replaces
        for change in changes(old, new, updatable=frozenset({"launchTemplate.version", "labels"}))
    }
    assert found == {"launchTemplate.id": True, "launchTemplate.version": False, "labels.a": False}


@given(st.dictionaries(st.text(min_size=1, max_size=8), plain, max_size=5))
def test_equal_inputs_have_no_change(values: dict[str, Any]) -> None:
    assert changes(values, values, updatable=frozenset()) == []


@given(
    st.dictionaries(st.sampled_from("abcd"), plain, max_size=4),
    st.dictionaries(st.sampled_from("abcd"), plain, max_size=4),
)
def test_different_inputs_always_have_a_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert bool(changes(old, new, updatable=frozenset())) == (
        repr(sorted(old.items())) != repr(sorted(new.items())) and old != new
    )


def test_asking_for_a_type_leaves_the_sdk_whole_for_the_program() -> None:
    asked = (
        "import pulumi_aws; from sandbox.clouds import sdk; "
        f"sdk.resource('{AWS}', '{TEMPLATE}'); print(pulumi_aws.ec2.LaunchTemplate.__name__)"
    )
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "LaunchTemplate", found.stderr
