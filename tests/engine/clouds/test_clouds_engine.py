"""The simulated AWS under the real engine: what a stack lives through. The tests build on each other, in this order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox.clouds.process import RunningCloud, running
from tests.support.pulumi import Outcome, Stack
from tests.support.simulated_aws import NOW

PROGRAM = """\
import json
import pulumi
import pulumi_aws as aws

config = pulumi.Config()
trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"Service": "ec2.amazonaws.com"}}]}
provider = aws.Provider("aws", region="us-west-2", default_tags={"tags": {"stack": "probe"}})
opts = pulumi.ResourceOptions(provider=provider)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"Name": config.get("name") or "probe"}, opts=opts)
subnet = aws.ec2.Subnet(
    "subnet", vpc_id=vpc.id, cidr_block=config.get("cidr") or "10.0.0.0/20", availability_zone="us-west-2a", opts=opts
)
group = aws.ec2.SecurityGroup("group", vpc_id=vpc.id, description="a group", opts=opts)
aws.vpc.SecurityGroupIngressRule(
    "rule", security_group_id=group.id, cidr_ipv4="10.8.0.0/16", ip_protocol="tcp", from_port=443, to_port=443, opts=opts
)
role = aws.iam.Role("role", assume_role_policy=json.dumps(trust), opts=opts)
aws.iam.RolePolicyAttachment(
    "policy", role=role.name, policy_arn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", opts=opts
)
template = aws.ec2.LaunchTemplate("template", instance_type=config.get("type") or "m7i.4xlarge", opts=opts)
aws.s3.Bucket("bucket", force_destroy=True, opts=opts)
if config.get_bool("key"):
    aws.kms.Key("key", enable_key_rotation=True, description="a key", opts=opts)
if config.get("raw"):
    raw = json.loads(config.require("raw"))
    pulumi.CustomResource(raw["type"], "raw", raw["inputs"], opts)
pulumi.export("version", template.latest_version)
pulumi.export("vpc", vpc.id)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clouds")
    project = directory / "program"
    project.mkdir()
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": sys.prefix}}
    (project / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "llm-serving", "runtime": runtime}))
    (project / "__main__.py").write_text(PROGRAM)
    return directory


@pytest.fixture
def cloud(place: Path) -> Iterator[RunningCloud]:
    """A process of its own for every test: all that it knows comes from the state directory."""
    with running("aws", state=place / "aws", clock=NOW) as made:
        made.inject()
        yield made


def stack(place: Path, cloud: RunningCloud, **config: object) -> Stack:
    made = Stack(name="probe", directory=place, environment=cloud.environment, project=place / "program")
    made.configure(config)
    return made


def touched(outcome: Outcome) -> set[tuple[str, str]]:
    return {(step.operation, step.name) for step in outcome.steps if step.operation not in {"same", "read", "refresh"}}


def test_a_stack_comes_up_and_a_second_up_and_a_refresh_find_it_so(place: Path, cloud: RunningCloud) -> None:
    probe = stack(place, cloud)
    assert probe.up().succeeded().changes == {"create": 10}
    assert probe.up("--expect-no-changes").succeeded().changes == {}
    assert "unchanged" in probe.refresh("--expect-no-changes").succeeded().text


def test_a_later_process_has_what_the_first_one_made(place: Path, cloud: RunningCloud) -> None:
    assert stack(place, cloud).refresh("--expect-no-changes").succeeded()


def test_after_a_kill_nothing_that_was_answered_is_lost(place: Path, cloud: RunningCloud) -> None:
    probe = stack(place, cloud, name="after")
    assert touched(probe.up().succeeded()) == {("update", "vpc")}
    cloud.kill()
    with running("aws", state=place / "aws") as later:
        again = stack(place, later, name="after")
        assert again.refresh("--expect-no-changes").succeeded()
        assert again.up("--expect-no-changes").succeeded()


def test_what_no_update_call_takes_replaces_and_a_new_template_version_does_not(
    place: Path, cloud: RunningCloud
) -> None:
    probe = stack(place, cloud, name="after", cidr="10.0.16.0/20", type="m7i.8xlarge")
    outcome = probe.up().succeeded()
    assert {("replace", "subnet"), ("create-replacement", "subnet"), ("delete-replaced", "subnet")} <= touched(outcome)
    assert ("update", "template") in touched(outcome)
    assert probe.outputs()["version"] == 2


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (
            '{"type": "aws:ec2/vpc:Vpc", "inputs": {"cidrBloc": "10.0.0.0/16"}}',
            "cidrBloc is not a property the SDK knows",
        ),
        ('{"type": "aws:ec2/vpc:Vpc", "inputs": {"cidrBlock": 10}}', "must be a string, got 10"),
        (
            '{"type": "aws:ec2/launchTemplate:LaunchTemplate", "inputs": {"instanceMarketOptions": {"marketType": "capacity-blok"}}}',
            "must be one of spot, capacity-block",
        ),
        ('{"type": "aws:ec2/instance:Instance", "inputs": {}}', "aws:ec2/instance:Instance is not among the"),
    ],
)
def test_what_sdk_model_or_tables_do_not_know_fails_the_preview(
    place: Path, cloud: RunningCloud, raw: str, told: str
) -> None:
    outcome = stack(place, cloud, name="after", cidr="10.0.16.0/20", type="m7i.8xlarge", raw=raw).preview()
    assert outcome.code != 0
    assert told in " ".join(outcome.text.split())


def test_a_resource_that_is_made_and_then_fails_is_finished_by_the_next_up(place: Path, cloud: RunningCloud) -> None:
    probe = stack(place, cloud, name="after", cidr="10.0.16.0/20", type="m7i.8xlarge", key=True)
    cloud.inject({"type": "aws:kms/key:Key", "call": "EnableKeyRotation", "fault": "error", "message": "not now"})
    failed = probe.up()
    assert failed.code != 0
    assert "not now" in failed.text
    (half,) = [resource for resource in probe.resources() if resource["type"] == "aws:kms/key:Key"]
    assert half["outputs"]["enableKeyRotation"] is False
    assert ("update", "key") in touched(probe.up().succeeded())
    (whole,) = [resource for resource in probe.resources() if resource["type"] == "aws:kms/key:Key"]
    assert (whole["id"], whole["outputs"]["enableKeyRotation"]) == (half["id"], True)


def test_a_read_that_does_not_see_the_new_key_at_first_is_tried_again(place: Path, cloud: RunningCloud) -> None:
    probe = stack(place, cloud, name="after", cidr="10.0.16.0/20", type="m7i.8xlarge")
    cloud.inject({"call": "DescribeVpcs", "fault": "not-found", "times": 3})
    assert probe.refresh("--expect-no-changes").succeeded()


def test_a_refused_creation_leaves_nothing_and_the_next_up_makes_it(place: Path, cloud: RunningCloud) -> None:
    probe = stack(
        place,
        cloud,
        name="after",
        cidr="10.0.16.0/20",
        type="m7i.8xlarge",
        raw='{"type": "aws:ec2/eip:Eip", "inputs": {"domain": "vpc"}}',
    )
    cloud.inject({"type": "aws:ec2/eip:Eip", "call": "create", "fault": "error", "message": "no address left"})
    assert "no address left" in probe.up().text
    assert not [resource for resource in probe.resources() if resource["type"] == "aws:ec2/eip:Eip"]
    assert ("create", "raw") in touched(probe.up().succeeded())


def test_a_creation_whose_wait_times_out_is_in_the_state_and_the_next_up_goes_on_with_it(
    place: Path, cloud: RunningCloud
) -> None:
    probe = stack(
        place,
        cloud,
        name="after",
        cidr="10.0.16.0/20",
        type="m7i.8xlarge",
        raw='{"type": "aws:ec2/internetGateway:InternetGateway", "inputs": {}}',
    )
    cloud.inject({"type": "aws:ec2/internetGateway:InternetGateway", "call": "create", "fault": "timeout"})
    failed = probe.up()
    assert failed.code != 0
    assert "timeout while waiting for the resource to become ready" in failed.text
    gateways = "aws:ec2/internetGateway:InternetGateway"
    (half,) = [resource for resource in probe.resources() if resource["type"] == gateways]
    probe.up().succeeded()
    (whole,) = [resource for resource in probe.resources() if resource["type"] == gateways]
    assert whole["id"] == half["id"]


def test_destroy_leaves_nothing(place: Path, cloud: RunningCloud) -> None:
    probe = stack(place, cloud)
    probe.destroy().succeeded()
    assert probe.resources() == [] or {resource["type"] for resource in probe.resources()} == {"pulumi:pulumi:Stack"}
