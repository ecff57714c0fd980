"""Launch templates, and what hangs on an Auto Scaling group."""

from __future__ import annotations

from typing import Any

from sandbox.clouds.aws import mapping, model
from sandbox.clouds.aws.table import AwsTable, Caller, Part, only_one
from sandbox.clouds.aws.tables.vpc import Ec2Table, tagged
from sandbox.clouds.tables import Autoname, NotFoundError, Values

TOP = ("name", "description", "tags", "region", "namePrefix", "updateDefaultVersion", "defaultVersion")


class LaunchTemplate(Ec2Table):
    token = "aws:ec2/launchTemplate:LaunchTemplate"
    operation, answer_key, id_member = "CreateLaunchTemplate", "LaunchTemplate", "LaunchTemplateId"
    autoname = Autoname("name", max_length=128, prefix_property="namePrefix")
    names = {
        "networkInterfaces.securityGroups": "Groups",
        "vpcSecurityGroupIds": "SecurityGroupIds",
        "securityGroupNames": "SecurityGroups",
        "blockDeviceMappings.ebs.kmsKeyId": "KmsKeyId",
        "tagSpecifications.tags": "Tags",
    }
    answer_names = {
        "name": "LaunchTemplateName",
        "latestVersion": "LatestVersionNumber",
        "defaultVersion": "DefaultVersionNumber",
        **names,
    }
    moves = frozenset({"latestVersion"})
    provider_only = frozenset({"namePrefix", "updateDefaultVersion"})
    tagging = tagged("launch-template")

    def __init__(self, account: Any) -> None:
        super().__init__(account)
        # Every setting goes into a new version; only the name is the template's own.
        self.updatable = frozenset(self.schema.inputs.properties) - {"name", "region"}

    def request(self, inputs: Values) -> dict[str, Any]:
        tags = self.tagging.members(self.all_tags(inputs)) if self.tagging else {}
        return {"LaunchTemplateName": inputs["name"], **self._version(inputs), **tags}

    def _version(self, inputs: Values) -> dict[str, Any]:
        members = model.operation(self.service, self.operation).input_shape.members
        data = {name: value for name, value in inputs.items() if name not in TOP}
        described = {"VersionDescription": inputs["description"]} if "description" in inputs else {}
        return {
            **described,
            "LaunchTemplateData": mapping.request(data, members["LaunchTemplateData"], names=self.names),
        }

    def update(self, id: str, old: Values, new: Values) -> None:
        call = self.caller(new)
        if self._version(old) != self._version(new):
            made = call("CreateLaunchTemplateVersion", LaunchTemplateId=id, **self._version(new))[
                "LaunchTemplateVersion"
            ]
            if new.get("updateDefaultVersion"):
                call("ModifyLaunchTemplate", LaunchTemplateId=id, DefaultVersion=str(made["VersionNumber"]))
        if new.get("defaultVersion") and new.get("defaultVersion") != old.get("defaultVersion"):
            call("ModifyLaunchTemplate", LaunchTemplateId=id, DefaultVersion=str(new["defaultVersion"]))
        self.retag(call, id, self.described_tags(call, id), self.all_tags(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeLaunchTemplates", LaunchTemplateIds=[id])["LaunchTemplates"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        versions = call("DescribeLaunchTemplateVersions", LaunchTemplateId=id, Versions=["$Latest"])
        latest = versions["LaunchTemplateVersions"][0]
        # moto puts the template's own tags among those of what is launched from it; EC2 keeps them apart.
        launched = latest["LaunchTemplateData"].get("TagSpecifications", [])
        data = {
            **latest["LaunchTemplateData"],
            "TagSpecifications": [spec for spec in launched if spec["ResourceType"] != "launch-template"],
        }
        hints = {name: hint for name, hint in self.schema.outputs.items() if name not in TOP}
        return {
            "arn": self.arn("launch-template", id, {}),
            "description": latest.get("VersionDescription") or None,
            **mapping.properties(data, hints, names={"id": "", **self.answer_names}),
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteLaunchTemplate", LaunchTemplateId=id)


class Schedule(AwsTable):
    token = "aws:autoscaling/schedule:Schedule"
    service, operation = "autoscaling", "PutScheduledUpdateGroupAction"
    only = (
        "arn",
        "scheduledActionName",
        "autoscalingGroupName",
        "startTime",
        "endTime",
        "recurrence",
        "minSize",
        "maxSize",
        "desiredCapacity",
        "timeZone",
    )
    answer_names = {"arn": "ScheduledActionARN"}
    parts = (
        Part(
            ("startTime", "endTime", "recurrence", "minSize", "maxSize", "desiredCapacity", "timeZone"),
            "put",
            at_create=False,
        ),
    )

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["scheduledActionName"])

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(self.operation, **self.request(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = call("DescribeScheduledActions")["ScheduledUpdateGroupActions"]
        return only_one([action for action in found if action["ScheduledActionName"] == id], id)

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        self.describe(call, id)
        call("DeleteScheduledAction", AutoScalingGroupName=properties["autoscalingGroupName"], ScheduledActionName=id)


class Attachment(AwsTable):
    """A target group that gets an Auto Scaling group's instances."""

    token = "aws:autoscaling/attachment:Attachment"
    service, operation = "autoscaling", "AttachLoadBalancerTargetGroups"

    def request(self, inputs: Values) -> dict[str, Any]:
        return {"AutoScalingGroupName": inputs["autoscalingGroupName"], "TargetGroupARNs": [inputs["lbTargetGroupArn"]]}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['autoscalingGroupName']}|{inputs['lbTargetGroupArn']}"

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        group, _, target = id.partition("|")
        attached = call("DescribeLoadBalancerTargetGroups", AutoScalingGroupName=group)["LoadBalancerTargetGroups"]
        if target not in {each["LoadBalancerTargetGroupARN"] for each in attached}:
            raise NotFoundError("NotFound", f"{target} is not attached to {group}")
        return {"autoscalingGroupName": group, "lbTargetGroupArn": target}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        group, _, target = id.partition("|")
        call = self.caller(inputs)
        self.describe(call, id)
        call("DetachLoadBalancerTargetGroups", AutoScalingGroupName=group, TargetGroupARNs=[target])


TABLES = (LaunchTemplate, Schedule, Attachment)
