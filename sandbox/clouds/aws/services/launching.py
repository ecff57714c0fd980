"""What a node group launches: the rules for its launch template, its Auto Scaling group, and its instances."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network

from moto.moto_api._internal import mock_random

from sandbox.clouds.aws.api import Api, Call
from sandbox.clouds.aws.services.control_planes import Document
from sandbox.clouds.aws.services.support import hexadecimal, refuse
from sandbox.clouds.tables import CloudError


@dataclass
class Group:
    """A node group's document, its Auto Scaling group's wish, and its instances."""

    document: Document
    template: Document
    desired: int
    instances: list[Document]
    starved_at: datetime | None = None
    ended_for_block: str | None = None

    @property
    def block(self) -> str | None:
        """The reservation that its launch template targets."""
        target = self.template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        reservation: str | None = target.get("CapacityReservationId")
        return reservation

    @property
    def instance_type(self) -> str:
        types = self.document.get("instanceTypes") or [self.template.get("InstanceType") or "t3.medium"]
        return str(types[0])

    @property
    def auto_scaling_group(self) -> str:
        return str(self.document["resources"]["autoScalingGroups"][0]["name"])


def launch_template(call: Call, named: Document | None) -> Document:
    """The launch template's data; refuses a template or version that does not exist."""
    if not named:
        return {}
    which = {"LaunchTemplateId": named["id"]} if "id" in named else {"LaunchTemplateName": named["name"]}
    try:
        found = call.api.moto(
            "ec2",
            "DescribeLaunchTemplateVersions",
            call.region,
            {**which, "Versions": [named.get("version", "$Default")]},
        )
    except CloudError as error:
        raise refuse("InvalidParameterException", f"launch template {named}: {error}") from error
    if not found["LaunchTemplateVersions"]:
        raise refuse("InvalidParameterException", f"launch template {named} has no such version")
    return dict(found["LaunchTemplateVersions"][0]["LaunchTemplateData"])


def check_template(params: Document, template: Document, found: list[Document]) -> None:
    """The rules of EKS for launch templates and capacity blocks (EKS user guide, launch-templates, capacity-blocks-mng)."""
    params["zones"] = sorted({subnet["AvailabilityZone"] for subnet in found})
    if template.get("InstanceType") and params.get("instanceTypes"):
        raise refuse("InvalidParameterException", "Cannot specify instance types in launch template and API request")
    if any(interface.get("SubnetId") for interface in template.get("NetworkInterfaces", [])):
        raise refuse("InvalidParameterException", "Launch template should not specify a subnet: the node group does")
    if template.get("IamInstanceProfile"):
        raise refuse(
            "InvalidParameterException", "Launch template should not specify an instance profile: the node role is used"
        )
    if template.get("SecurityGroupIds") and template.get("NetworkInterfaces"):
        raise refuse(
            "InvalidParameterException",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    market = template.get("InstanceMarketOptions", {}).get("MarketType")
    target = template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget")
    if market == "spot":
        raise refuse(
            "InvalidParameterException", "Launch template should not specify Spot: the node group's capacity type does"
        )
    if params.get("capacityType") == "CAPACITY_BLOCK":
        if not template.get("InstanceType") or market != "capacity-block" or not target:
            raise refuse(
                "InvalidParameterException",
                "capacity type CAPACITY_BLOCK needs a launch template with an instance type, the market type capacity-block and a target reservation",
            )
        if len(params["zones"]) != 1:
            raise refuse(
                "InvalidParameterException",
                f"capacity type CAPACITY_BLOCK needs subnets of exactly one Availability Zone, got {', '.join(params['zones'])}",
            )
    elif market == "capacity-block":
        raise refuse("InvalidParameterException", "market type capacity-block needs the capacity type CAPACITY_BLOCK")


def make_auto_scaling_group(call: Call, group: Group) -> None:
    """Instances are kept here, not in moto: its group stays empty and serves what hangs on it."""
    named = group.document.get("launchTemplate")
    which = {"LaunchTemplateId": named["id"]} if named and "id" in named else None
    if which is None:
        made = call.api.moto(
            "ec2",
            "CreateLaunchTemplate",
            call.region,
            {
                "LaunchTemplateName": f"eks-{hexadecimal(8)}",
                "LaunchTemplateData": {"InstanceType": group.instance_type},
            },
        )
        which = {"LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"]}
    call.api.moto(
        "autoscaling",
        "CreateAutoScalingGroup",
        call.region,
        {
            "AutoScalingGroupName": group.auto_scaling_group,
            "MinSize": 0,
            "MaxSize": group.document["scalingConfig"]["maxSize"],
            "DesiredCapacity": 0,
            "LaunchTemplate": which,
            "VPCZoneIdentifier": ",".join(group.document["subnets"]),
        },
    )


def launch(api: Api, region: str, cluster: str, group: Group) -> Document:
    """One more instance, in the next of the group's subnets."""
    ids = group.document["subnets"]
    found = api.moto("ec2", "DescribeSubnets", region, {"SubnetIds": ids})["Subnets"]
    by_id = {subnet["SubnetId"]: subnet for subnet in found}
    subnet = by_id[ids[len(group.instances) % len(ids)]]
    network = IPv4Network(subnet["CidrBlock"])
    address = network[mock_random.randint(10, network.num_addresses - 2)]
    return {
        "id": f"i-{hexadecimal()}",
        "name": f"ip-{str(address).replace('.', '-')}.{region}.compute.internal",
        "address": str(address),
        "zone": subnet["AvailabilityZone"],
        "zoneId": subnet["AvailabilityZoneId"],
        "cluster": cluster,
    }
