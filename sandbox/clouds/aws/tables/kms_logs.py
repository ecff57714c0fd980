"""Keys and log groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging, only_one
from sandbox.clouds.aws.tables.iam import as_json, same_document
from sandbox.clouds.tables import Autoname, NotFoundError, Values

DELETION_WINDOW_DAYS = 30
"""The API's own default."""


class Key(AwsTable):
    token = "aws:kms/key:Key"
    service, operation = "kms", "CreateKey"
    names = {"customerMasterKeySpec": "KeySpec", "customKeyStoreId": "CustomKeyStoreId"}
    answer_names = {"customerMasterKeySpec": "KeySpec", "isEnabled": "Enabled", "policy": ""}
    parts = (
        Part(("enableKeyRotation", "rotationPeriodInDays"), "set_rotation"),
        Part(("isEnabled",), "set_enabled"),
        Part(("description",), "set_description", at_create=False),
        Part(("policy",), "set_policy", at_create=False),
    )
    provider_only = frozenset({"deletionWindowInDays"})
    tagging = Tagging("Tags", "list", pair=("TagKey", "TagValue"))

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["KeyMetadata"]["KeyId"])

    def set_rotation(self, call: Caller, id: str, old: Values, new: Values) -> None:
        if new.get("enableKeyRotation"):
            call("EnableKeyRotation", KeyId=id, RotationPeriodInDays=new.get("rotationPeriodInDays"))
        else:
            call("DisableKeyRotation", KeyId=id)

    def set_enabled(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("EnableKey" if new.get("isEnabled", True) else "DisableKey", KeyId=id)

    def set_description(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateKeyDescription", KeyId=id, Description=new.get("description", ""))

    def set_policy(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("PutKeyPolicy", KeyId=id, PolicyName="default", Policy=new["policy"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = dict(call("DescribeKey", KeyId=id)["KeyMetadata"])
        if found["KeyState"] == "PendingDeletion":
            raise NotFoundError("NotFoundException", f"{id} is pending deletion")
        tags = call("ListResourceTags", KeyId=id).get("Tags", [])
        return {**found, "Tags": tags}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        rotation = call("GetKeyRotationStatus", KeyId=id)
        return {
            "enableKeyRotation": rotation["KeyRotationEnabled"],
            "policy": as_json(call("GetKeyPolicy", KeyId=id, PolicyName="default")["Policy"]),
        }

    def _found(self, live: Values, inputs: Values) -> Any:
        live["policy"] = same_document(inputs.get("policy"), live["policy"])
        return super()._found(live, inputs)

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        if old.keys() - new.keys():
            call("UntagResource", KeyId=id, TagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", KeyId=id, Tags=[{"TagKey": k, "TagValue": v} for k, v in sorted(new.items())])

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call(
            "ScheduleKeyDeletion",
            KeyId=id,
            PendingWindowInDays=properties.get("deletionWindowInDays", DELETION_WINDOW_DAYS),
        )


class LogGroup(AwsTable):
    token = "aws:cloudwatch/logGroup:LogGroup"
    service, operation = "logs", "CreateLogGroup"
    autoname = Autoname("name", max_length=512, prefix_property="namePrefix")
    names = {"name": "logGroupName"}
    answer_names = {"name": "logGroupName", "arn": ""}
    parts = (
        Part(("retentionInDays",), "set_retention"),
        Part(("kmsKeyId",), "set_key", at_create=False),
    )
    provider_only = frozenset({"namePrefix", "skipDestroy"})
    tagging = Tagging("tags", "map")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["name"])

    def set_retention(self, call: Caller, id: str, old: Values, new: Values) -> None:
        if new.get("retentionInDays"):
            call("PutRetentionPolicy", logGroupName=id, retentionInDays=new["retentionInDays"])
        elif old.get("retentionInDays"):
            call("DeleteRetentionPolicy", logGroupName=id)

    def set_key(self, call: Caller, id: str, old: Values, new: Values) -> None:
        if new.get("kmsKeyId"):
            call("AssociateKmsKey", logGroupName=id, kmsKeyId=new["kmsKeyId"])
        else:
            call("DisassociateKmsKey", logGroupName=id)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        listed = call("DescribeLogGroups", logGroupNamePrefix=id)["logGroups"]
        found = only_one([group for group in listed if group["logGroupName"] == id], id)
        tags = call("ListTagsForResource", resourceArn=_plain_arn(found)).get("tags", {})
        return {**found, "tags": tags}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"arn": _plain_arn(answer)}

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        arn = _plain_arn(self.describe(call, id))
        if old.keys() - new.keys():
            call("UntagResource", resourceArn=arn, tagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", resourceArn=arn, tags=dict(new))

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteLogGroup", logGroupName=id)


def _plain_arn(group: dict[str, Any]) -> str:
    return str(group["arn"]).removesuffix(":*")


TABLES = (Key, LogGroup)
