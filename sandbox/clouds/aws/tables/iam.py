"""Roles and what they may do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging
from sandbox.clouds.tables import Autoname, NotFoundError, Values


def as_json(document: Any) -> str:
    """A policy document as the program would write it: answers come as objects or percent-encoded."""
    parsed = json.loads(unquote(document)) if isinstance(document, str) else document
    return json.dumps(parsed, sort_keys=True)


def same_document(wanted: str | None, found: str) -> str:
    """The program's text when it means the same."""
    if wanted is not None and json.loads(wanted) == json.loads(found):
        return wanted
    return found


class Role(AwsTable):
    token = "aws:iam/role:Role"
    service, operation = "iam", "CreateRole"
    autoname = Autoname("name", max_length=64, prefix_property="namePrefix")
    names = {"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"}
    answer_names = {
        "name": "RoleName",
        "assumeRolePolicy": "",
        "uniqueId": "RoleId",
        "inlinePolicies": "",
        "managedPolicyArns": "",
    }
    parts = (
        Part(("assumeRolePolicy",), "set_trust", at_create=False),
        Part(("description", "maxSessionDuration"), "set_role", at_create=False),
    )
    provider_only = frozenset({"namePrefix", "forceDetachPolicies"})
    tagging = Tagging("Tags", "list")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["name"])

    def set_trust(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateAssumeRolePolicy", RoleName=id, PolicyDocument=new["assumeRolePolicy"])

    def set_role(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(
            "UpdateRole",
            RoleName=id,
            Description=new.get("description", ""),
            MaxSessionDuration=new.get("maxSessionDuration"),
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("GetRole", RoleName=id)["Role"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"assumeRolePolicy": as_json(answer["AssumeRolePolicyDocument"])}

    def _found(self, live: Values, inputs: Values) -> Any:
        live["assumeRolePolicy"] = same_document(inputs.get("assumeRolePolicy"), live["assumeRolePolicy"])
        return super()._found(live, inputs)

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        if old.keys() - new.keys():
            call("UntagRole", RoleName=id, TagKeys=sorted(old.keys() - new.keys()))
        if new != old and new:
            call("TagRole", RoleName=id, Tags=[{"Key": k, "Value": v} for k, v in sorted(new.items())])

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteRole", RoleName=id)


class RolePolicy(AwsTable):
    token = "aws:iam/rolePolicy:RolePolicy"
    service, operation = "iam", "PutRolePolicy"
    autoname = Autoname("name", max_length=128, prefix_property="namePrefix")
    names = {"name": "PolicyName", "policy": "PolicyDocument", "role": "RoleName"}
    answer_names = {"name": "PolicyName", "role": "RoleName", "policy": ""}
    parts = (Part(("policy",), "set_policy", at_create=False),)
    provider_only = frozenset({"namePrefix"})

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['role']}:{inputs['name']}"

    def set_policy(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(self.operation, **self.request(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        role, _, name = id.partition(":")
        return call("GetRolePolicy", RoleName=role, PolicyName=name)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"policy": as_json(answer["PolicyDocument"])}

    def _found(self, live: Values, inputs: Values) -> Any:
        live["policy"] = same_document(inputs.get("policy"), live["policy"])
        return super()._found(live, inputs)

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        role, _, name = id.partition(":")
        self.caller(inputs)("DeleteRolePolicy", RoleName=role, PolicyName=name)


class RolePolicyAttachment(AwsTable):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    service, operation = "iam", "AttachRolePolicy"
    names = {"role": "RoleName"}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['role']}/{inputs['policyArn']}"

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        role, _, arn = id.partition("/")
        attached = call("ListAttachedRolePolicies", RoleName=role)["AttachedPolicies"]
        if arn not in {policy["PolicyArn"] for policy in attached}:
            raise NotFoundError("NoSuchEntity", f"{arn} is not attached to {role}")
        return {"role": role, "PolicyArn": arn}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        role, _, arn = id.partition("/")
        self.caller(inputs)("DetachRolePolicy", RoleName=role, PolicyArn=arn)


TABLES = (Role, RolePolicy, RolePolicyAttachment)
