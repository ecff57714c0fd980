"""Network load balancers. Much of what the SDK has as a property is an attribute in the API: a key and a string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging, only_one
from sandbox.clouds.tables import Autoname, Values


class _Elb(AwsTable):
    """attributes: property → key of the resource's attributes. modify, told: the calls that set and tell them."""

    service = "elbv2"
    tagging = Tagging("Tags", "list")
    attributes: ClassVar[Mapping[str, str]] = {}
    modify: ClassVar[str]
    told: ClassVar[str]
    arn_member: ClassVar[str]
    list_key: ClassVar[str]

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer[self.list_key][0][self.arn_member])

    def set_attributes(self, call: Caller, id: str, old: Values, new: Values) -> None:
        changed = [
            {"Key": key, "Value": _text(new[name])}
            for name, key in self.attributes.items()
            if name in new and new[name] != old.get(name)
        ]
        if changed:
            call(self.modify, **{self.arn_member: id}, Attributes=changed)

    def told_attributes(self, call: Caller, id: str) -> Values:
        """Properties that are attributes, as numbers and truth values where they are such."""
        found = {each["Key"]: each["Value"] for each in call(self.told, **{self.arn_member: id})["Attributes"]}
        return {
            name: _typed(found[key], self.schema.outputs[name]) for name, key in self.attributes.items() if key in found
        }

    def described_tags(self, call: Caller, id: str) -> Mapping[str, str]:
        found = call("DescribeTags", ResourceArns=[id])["TagDescriptions"]
        return {tag["Key"]: tag["Value"] for each in found for tag in each["Tags"]}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        tags = dict(self.described_tags(call, id))
        return {"arn": id, "tags": tags, **self.told_attributes(call, id), **self.own(call, id, answer)}

    def own(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        """Further outputs of one type."""
        return {}

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        if old.keys() - new.keys():
            call("RemoveTags", ResourceArns=[id], TagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("AddTags", ResourceArns=[id], Tags=[{"Key": k, "Value": v} for k, v in sorted(new.items())])


class LoadBalancer(_Elb):
    token = "aws:lb/loadBalancer:LoadBalancer"
    operation = "CreateLoadBalancer"
    arn_member, list_key = "LoadBalancerArn", "LoadBalancers"
    modify, told = "ModifyLoadBalancerAttributes", "DescribeLoadBalancerAttributes"
    autoname = Autoname("name", max_length=32, prefix_property="namePrefix")
    names = {"loadBalancerType": "Type"}
    answer_names = {
        "name": "LoadBalancerName",
        "loadBalancerType": "Type",
        "dnsName": "DNSName",
        "zoneId": "CanonicalHostedZoneId",
        "internal": "",
        "subnets": "",
        "subnetMappings": "",
    }
    attributes: ClassVar[Mapping[str, str]] = {
        "enableCrossZoneLoadBalancing": "load_balancing.cross_zone.enabled",
        "enableDeletionProtection": "deletion_protection.enabled",
        "idleTimeout": "idle_timeout.timeout_seconds",
        "dnsRecordClientRoutingPolicy": "dns_record.client_routing_policy",
    }
    parts = (
        Part(tuple(attributes), "set_attributes"),
        Part(("securityGroups",), "set_groups", at_create=False),
        Part(("subnets",), "set_subnets", at_create=False),
    )
    provider_only = frozenset({"namePrefix"})

    def request(self, inputs: Values) -> dict[str, Any]:
        made = super().request({name: value for name, value in inputs.items() if name != "internal"})
        return {**made, "Scheme": "internal" if inputs.get("internal") else "internet-facing"}

    def set_groups(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("SetSecurityGroups", LoadBalancerArn=id, SecurityGroups=new.get("securityGroups") or [])

    def set_subnets(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("SetSubnets", LoadBalancerArn=id, Subnets=new["subnets"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeLoadBalancers", LoadBalancerArns=[id])["LoadBalancers"], id)

    def own(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {
            "internal": answer["Scheme"] == "internal",
            "subnets": [zone["SubnetId"] for zone in answer["AvailabilityZones"]],
            "arnSuffix": id.partition(":loadbalancer/")[2],
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call("DeleteLoadBalancer", LoadBalancerArn=id)


class TargetGroup(_Elb):
    token = "aws:lb/targetGroup:TargetGroup"
    operation = "CreateTargetGroup"
    arn_member, list_key = "TargetGroupArn", "TargetGroups"
    modify, told = "ModifyTargetGroupAttributes", "DescribeTargetGroupAttributes"
    autoname = Autoname("name", max_length=32, prefix_property="namePrefix")
    HEALTH: ClassVar[Mapping[str, str]] = {
        "enabled": "HealthCheckEnabled",
        "protocol": "HealthCheckProtocol",
        "port": "HealthCheckPort",
        "path": "HealthCheckPath",
        "interval": "HealthCheckIntervalSeconds",
        "timeout": "HealthCheckTimeoutSeconds",
        "healthyThreshold": "HealthyThresholdCount",
        "unhealthyThreshold": "UnhealthyThresholdCount",
    }
    answer_names = {"name": "TargetGroupName", "healthCheck": ""}
    attributes: ClassVar[Mapping[str, str]] = {
        "deregistrationDelay": "deregistration_delay.timeout_seconds",
        "connectionTermination": "deregistration_delay.connection_termination.enabled",
        "preserveClientIp": "preserve_client_ip.enabled",
        "proxyProtocolV2": "proxy_protocol_v2.enabled",
        "slowStart": "slow_start.duration_seconds",
    }
    parts = (
        Part(tuple(attributes), "set_attributes"),
        Part(("healthCheck",), "set_health_check", at_create=False),
    )
    provider_only = frozenset({"namePrefix"})

    def request(self, inputs: Values) -> dict[str, Any]:
        made = super().request({name: value for name, value in inputs.items() if name != "healthCheck"})
        return {**made, **self._health(inputs)}

    def _health(self, inputs: Values) -> dict[str, Any]:
        check = dict(inputs.get("healthCheck") or {})
        matcher = check.pop("matcher", None)
        members = {self.HEALTH[name]: value for name, value in check.items()}
        return {**members, **({"Matcher": {"HttpCode": matcher}} if matcher else {})}

    def set_health_check(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("ModifyTargetGroup", TargetGroupArn=id, **self._health(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeTargetGroups", TargetGroupArns=[id])["TargetGroups"], id)

    def own(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        health = {name: answer[member] for name, member in self.HEALTH.items() if answer.get(member) is not None}
        # Which load balancers use the group is not this resource's: the answer changes with them.
        return {"healthCheck": health, "arnSuffix": id.rpartition(":")[2], "loadBalancerArns": []}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call("DeleteTargetGroup", TargetGroupArn=id)


class Listener(_Elb):
    token = "aws:lb/listener:Listener"
    operation = "CreateListener"
    arn_member, list_key = "ListenerArn", "Listeners"
    modify, told = "ModifyListenerAttributes", "DescribeListenerAttributes"
    answer_names = {"certificateArn": "", "mutualAuthentication": "", "alpnPolicy": ""}
    attributes: ClassVar[Mapping[str, str]] = {"tcpIdleTimeoutSeconds": "tcp.idle_timeout.seconds"}
    parts = (
        Part(tuple(attributes), "set_attributes"),
        Part(
            ("port", "protocol", "sslPolicy", "certificateArn", "defaultActions", "alpnPolicy"),
            "change",
            at_create=False,
        ),
    )

    def request(self, inputs: Values) -> dict[str, Any]:
        made = super().request(
            {name: value for name, value in inputs.items() if name not in ("certificateArn", "alpnPolicy")}
        )
        certificate = (
            {"Certificates": [{"CertificateArn": inputs["certificateArn"]}]} if "certificateArn" in inputs else {}
        )
        alpn = {"AlpnPolicy": [inputs["alpnPolicy"]]} if "alpnPolicy" in inputs else {}
        return {**made, **certificate, **alpn}

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        request = {name: value for name, value in self.request(new).items() if name not in ("LoadBalancerArn", "Tags")}
        call("ModifyListener", ListenerArn=id, **request)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeListeners", ListenerArns=[id])["Listeners"], id)

    def own(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        certificates = answer.get("Certificates") or []
        return {"certificateArn": certificates[0]["CertificateArn"] if certificates else None}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call("DeleteListener", ListenerArn=id)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(value: str, hint: Any) -> Any:
    if hint is bool:
        return value == "true"
    return int(value) if hint is int else value


TABLES = (LoadBalancer, TargetGroup, Listener)
