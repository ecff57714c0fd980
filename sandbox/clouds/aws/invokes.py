"""Data sources, answered from the same API."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sandbox.clouds import sdk
from sandbox.clouds.aws import mapping
from sandbox.clouds.aws.table import PACKAGE
from sandbox.clouds.tables import NotFoundError, NotSimulatedError, Values

CAPACITY_BLOCK = "aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation"

EKS_IMAGES = "/aws/service/eks/optimized-ami/"
"""SSM parameters that name the images of EKS; moto has none of them."""


class Account(Protocol):
    """What a data source needs of the cloud."""

    id: str
    region: str

    def call(self, service: str, operation: str, *, region: str, **params: Any) -> dict[str, Any]: ...


Answer = Callable[[Account, Values, str], Values]


def answer(cloud: Account, token: str, arguments: Values) -> Values:
    """The results of one data source. Raises NotSimulatedError for one that is not in the table."""
    if token not in INVOKES:
        raise NotSimulatedError(f"{token} is not among the simulated data sources: {', '.join(sorted(INVOKES))}")
    region = arguments.get("region", cloud.region)
    results = sdk.function(PACKAGE, token)[1]
    told = {**arguments, **INVOKES[token](cloud, arguments, region)}
    told.setdefault("region", region)
    return {name: value for name, value in told.items() if name in results}


def caller_identity(cloud: Account, arguments: Values, region: str) -> Values:
    told = cloud.call("sts", "GetCallerIdentity", region=region)
    return {"accountId": told["Account"], "arn": told["Arn"], "id": told["Account"], "userId": told["UserId"]}


def partition(cloud: Account, arguments: Values, region: str) -> Values:
    name = "aws-us-gov" if region.startswith("us-gov-") else "aws"
    return {"partition": name, "id": name, "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def region_of(cloud: Account, arguments: Values, region: str) -> Values:
    return {
        "id": region,
        "name": region,
        "region": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
        "description": region,
    }


def availability_zones(cloud: Account, arguments: Values, region: str) -> Values:
    filters = _filters(arguments)
    if arguments.get("state"):
        filters.append({"Name": "state", "Values": [arguments["state"]]})
    zones = cloud.call("ec2", "DescribeAvailabilityZones", region=region, Filters=filters or None)["AvailabilityZones"]
    left = [
        zone
        for zone in zones
        if zone["ZoneName"] not in arguments.get("excludeNames", [])
        and zone["ZoneId"] not in arguments.get("excludeZoneIds", [])
    ]
    groups = sorted({zone.get("GroupName", region) for zone in left})
    return {
        "id": region,
        "names": [zone["ZoneName"] for zone in left],
        "zoneIds": [zone["ZoneId"] for zone in left],
        "groupNames": groups,
    }


def capacity_block_reservation(cloud: Account, arguments: Values, region: str) -> Values:
    ids = [arguments["id"]] if "id" in arguments else None
    found = cloud.call(
        "ec2",
        "DescribeCapacityReservations",
        region=region,
        CapacityReservationIds=ids,
        Filters=_filters(arguments) or None,
    )["CapacityReservations"]
    if len(found) != 1:
        raise NotFoundError("NotFound", f"{len(found)} capacity blocks match; there must be exactly one")
    block = found[0]
    named = {
        "id": "CapacityReservationId",
        "arn": "CapacityReservationArn",
        "instanceCount": "TotalInstanceCount",
        "createdDate": "CreateDate",
    }
    return mapping.properties(block, sdk.function(PACKAGE, CAPACITY_BLOCK)[1], names=named)


def instance_type_offerings(cloud: Account, arguments: Values, region: str) -> Values:
    found = cloud.call(
        "ec2",
        "DescribeInstanceTypeOfferings",
        region=region,
        LocationType=arguments.get("locationType"),
        Filters=_filters(arguments) or None,
    )["InstanceTypeOfferings"]
    return {
        "id": region,
        "instanceTypes": [each["InstanceType"] for each in found],
        "locations": [each["Location"] for each in found],
        "locationTypes": [each["LocationType"] for each in found],
    }


def parameter(cloud: Account, arguments: Values, region: str) -> Values:
    name = arguments["name"]
    if name.startswith(EKS_IMAGES) and name.endswith("/image_id"):
        value, kind, version = f"ami-{abs(_digits(name)):017x}", "String", 1
    else:
        found = cloud.call(
            "ssm", "GetParameter", region=region, Name=name, WithDecryption=arguments.get("withDecryption")
        )["Parameter"]
        value, kind, version = found["Value"], found["Type"], found["Version"]
    arn = f"arn:aws:ssm:{region}:{cloud.id}:parameter/{name.lstrip('/')}"
    return {"id": name, "arn": arn, "value": value, "insecureValue": value, "type": kind, "version": version}


def policy_document(cloud: Account, arguments: Values, region: str) -> Values:
    unsupported = {"overrideJson", "overridePolicyDocuments", "sourceJson", "sourcePolicyDocuments"} & arguments.keys()
    if unsupported:
        raise NotSimulatedError(f"getPolicyDocument with {', '.join(sorted(unsupported))} is not simulated")
    document: Values = {"Version": arguments.get("version", "2012-10-17")}
    document |= {"Id": arguments["policyId"]} if "policyId" in arguments else {}
    document["Statement"] = [_statement(each) for each in arguments.get("statements", [])]
    return {
        "id": str(_digits(json.dumps(document, sort_keys=True))),
        "json": json.dumps(document, indent=2),
        "minifiedJson": json.dumps(document, separators=(",", ":")),
    }


def _statement(given: Values) -> Values:
    made: Values = {"Sid": given["sid"]} if given.get("sid") else {}
    made["Effect"] = given.get("effect", "Allow")
    for name, member in (
        ("actions", "Action"),
        ("notActions", "NotAction"),
        ("resources", "Resource"),
        ("notResources", "NotResource"),
    ):
        if given.get(name):
            made[member] = _single(sorted(given[name]))
    for name, member in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if given.get(name):
            made[member] = {each["type"]: _single(sorted(each["identifiers"])) for each in given[name]}
    conditions: Values = {}
    for each in given.get("conditions", []):
        conditions.setdefault(each["test"], {})[each["variable"]] = _single(each["values"])
    return {**made, **({"Condition": conditions} if conditions else {})}


def service_quota(cloud: Account, arguments: Values, region: str) -> Values:
    if "quotaCode" not in arguments:
        raise NotSimulatedError("getServiceQuota by quotaName is not simulated: give quotaCode")
    found = cloud.call(
        "service-quotas",
        "GetServiceQuota",
        region=region,
        ServiceCode=arguments["serviceCode"],
        QuotaCode=arguments["quotaCode"],
    )["Quota"]
    return {
        "id": found["QuotaArn"],
        "arn": found["QuotaArn"],
        "value": found["Value"],
        "adjustable": found["Adjustable"],
        "globalQuota": found["GlobalQuota"],
        "quotaName": found["QuotaName"],
        "serviceName": found["ServiceName"],
        "defaultValue": found["Value"],
    }


def cluster_auth(cloud: Account, arguments: Values, region: str) -> Values:
    cloud.call("eks", "DescribeCluster", region=region, name=arguments["name"])
    token = (
        base64.urlsafe_b64encode(f"https://sts.{region}.amazonaws.com/{arguments['name']}".encode())
        .decode()
        .rstrip("=")
    )
    return {"id": arguments["name"], "name": arguments["name"], "token": f"k8s-aws-v1.{token}"}


def _filters(arguments: Values) -> list[dict[str, Any]]:
    return [{"Name": each["name"], "Values": each["values"]} for each in arguments.get("filters") or []]


def _single(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else values


def _digits(text: str) -> int:
    return zlib.crc32(text.encode())


INVOKES: Mapping[str, Answer] = {
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region_of,
    "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    CAPACITY_BLOCK: capacity_block_reservation,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": instance_type_offerings,
    "aws:ssm/getParameter:getParameter": parameter,
    "aws:iam/getPolicyDocument:getPolicyDocument": policy_document,
    "aws:servicequotas/getServiceQuota:getServiceQuota": service_quota,
    "aws:eks/getClusterAuth:getClusterAuth": cluster_auth,
}
