"""Security groups and their rules."""

from __future__ import annotations

from typing import Any

from sandbox.clouds.aws.table import Caller, Part, only_one
from sandbox.clouds.aws.tables.vpc import Ec2Table, tagged
from sandbox.clouds.tables import Autoname, NotFoundError, Values

MANAGED_BY = "Managed by Pulumi"
"""The provider's own description when the program gives none."""


class SecurityGroup(Ec2Table):
    token = "aws:ec2/securityGroup:SecurityGroup"
    operation = "CreateSecurityGroup"
    autoname: Autoname | None = Autoname("name", prefix_property="namePrefix")
    names = {"name": "GroupName"}
    answer_names = {"name": "GroupName", "ingress": "", "egress": ""}
    fixed = {"Description": MANAGED_BY}
    parts = (Part(("ingress",), "set_ingress"), Part(("egress",), "set_egress"))
    provider_only = frozenset({"namePrefix", "revokeRulesOnDelete"})
    tagging = tagged("security-group")

    def create(self, inputs: Values) -> str:
        made = super().create(inputs)
        # EC2 lets everything out of a new group; the provider takes that away unless the program says it.
        if "egress" not in inputs:
            self._drop_all(self.caller(inputs), made, "Egress")
        return made

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["GroupId"])

    def set_ingress(self, call: Caller, id: str, old: Values, new: Values) -> None:
        self._set(call, id, "Ingress", new.get("ingress") or [])

    def set_egress(self, call: Caller, id: str, old: Values, new: Values) -> None:
        self._set(call, id, "Egress", new.get("egress") or [])

    def _set(self, call: Caller, id: str, way: str, rules: list[Values]) -> None:
        self._drop_all(call, id, way)
        if rules:
            call(f"AuthorizeSecurityGroup{way}", GroupId=id, IpPermissions=[_permission(rule, id) for rule in rules])

    def _drop_all(self, call: Caller, id: str, way: str) -> None:
        found = self.describe(call, id)["IpPermissions" if way == "Ingress" else "IpPermissionsEgress"]
        if found:
            call(f"RevokeSecurityGroup{way}", GroupId=id, IpPermissions=found)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeSecurityGroups", GroupIds=[id])["SecurityGroups"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"arn": self.arn("security-group", id, answer)}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteSecurityGroup", GroupId=id)


class DefaultSecurityGroup(SecurityGroup):
    """The group that each VPC has: taken over, never made or deleted."""

    token = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
    autoname = None
    provider_only = frozenset({"revokeRulesOnDelete"})

    def problems(self, inputs: Values) -> Any:
        return iter(())

    def create(self, inputs: Values) -> str:
        call = self.caller(inputs)
        here = [{"Name": "vpc-id", "Values": [inputs["vpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
        found = call("DescribeSecurityGroups", Filters=here)["SecurityGroups"]
        id = str(only_one(found, f"the default security group of {inputs['vpcId']}")["GroupId"])
        self.set_ingress(call, id, {}, inputs)
        self.set_egress(call, id, {}, inputs)
        if self.all_tags(inputs):
            self.retag(call, id, {}, self.all_tags(inputs))
        return id

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        """The VPC takes it along."""


def _permission(rule: Values, own: str) -> dict[str, Any]:
    described = {"Description": rule["description"]} if rule.get("description") else {}
    groups = [*(rule.get("securityGroups") or []), *([own] if rule.get("self") else [])]
    return {
        "IpProtocol": str(rule["protocol"]),
        "FromPort": rule["fromPort"],
        "ToPort": rule["toPort"],
        "IpRanges": [{"CidrIp": cidr, **described} for cidr in rule.get("cidrBlocks") or []],
        "Ipv6Ranges": [{"CidrIpv6": cidr, **described} for cidr in rule.get("ipv6CidrBlocks") or []],
        "PrefixListIds": [{"PrefixListId": each, **described} for each in rule.get("prefixListIds") or []],
        "UserIdGroupPairs": [{"GroupId": each, **described} for each in groups],
    }


class _Rule(Ec2Table):
    """One rule with an id of its own."""

    way: str
    only = (
        "securityGroupId",
        "securityGroupRuleId",
        "cidrIpv4",
        "cidrIpv6",
        "description",
        "fromPort",
        "toPort",
        "ipProtocol",
        "prefixListId",
        "tags",
        "tagsAll",
    )
    answer_names = {"securityGroupId": "GroupId"}
    parts = (
        Part(
            (
                "cidrIpv4",
                "cidrIpv6",
                "description",
                "fromPort",
                "toPort",
                "ipProtocol",
                "prefixListId",
                "referencedSecurityGroupId",
            ),
            "modify",
            at_create=False,
        ),
    )
    tagging = tagged("security-group-rule")

    def request(self, inputs: Values) -> dict[str, Any]:
        described = {"Description": inputs["description"]} if "description" in inputs else {}
        peers = {
            "cidrIpv4": ("IpRanges", "CidrIp"),
            "cidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
            "prefixListId": ("PrefixListIds", "PrefixListId"),
            "referencedSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
        }
        permission: dict[str, Any] = {"IpProtocol": inputs["ipProtocol"]}
        for name, member in (("fromPort", "FromPort"), ("toPort", "ToPort")):
            if name in inputs:
                permission[member] = inputs[name]
        for name, (member, inner) in peers.items():
            if name in inputs:
                permission[member] = [{inner: inputs[name], **described}]
        tags = self.tagging.members(self.all_tags(inputs)) if self.tagging else {}
        return {"GroupId": inputs["securityGroupId"], "IpPermissions": [permission], **tags}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def modify(self, call: Caller, id: str, old: Values, new: Values) -> None:
        members = {
            "cidrIpv4": "CidrIpv4",
            "cidrIpv6": "CidrIpv6",
            "description": "Description",
            "fromPort": "FromPort",
            "toPort": "ToPort",
            "ipProtocol": "IpProtocol",
            "prefixListId": "PrefixListId",
            "referencedSecurityGroupId": "ReferencedGroupId",
        }
        rule = {member: new[name] for name, member in members.items() if name in new}
        call(
            "ModifySecurityGroupRules",
            GroupId=new["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": id, "SecurityGroupRule": rule}],
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = call("DescribeSecurityGroupRules", SecurityGroupRuleIds=[id])["SecurityGroupRules"]
        matching = [rule for rule in found if rule["SecurityGroupRuleId"] == id]
        if not matching:
            raise NotFoundError("InvalidSecurityGroupRuleId.NotFound", f"{id} does not exist")
        rule = matching[0]
        # A rule for every protocol has no ports; EC2 tells -1.
        return {name: value for name, value in rule.items() if name not in ("FromPort", "ToPort") or value != -1}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        peer = (answer.get("ReferencedGroupInfo") or {}).get("GroupId")
        return {"arn": self.arn("security-group-rule", id, answer), "referencedSecurityGroupId": peer}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call(f"RevokeSecurityGroup{self.way}", GroupId=properties["securityGroupId"], SecurityGroupRuleIds=[id])


class IngressRule(_Rule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    operation, way = "AuthorizeSecurityGroupIngress", "Ingress"


class EgressRule(_Rule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    operation, way = "AuthorizeSecurityGroupEgress", "Egress"


TABLES = (SecurityGroup, DefaultSecurityGroup, IngressRule, EgressRule)
