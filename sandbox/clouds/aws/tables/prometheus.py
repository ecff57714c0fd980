"""Managed Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging
from sandbox.clouds.tables import Values


class AmpTable(AwsTable):
    service = "amp"

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        arn = self.describe(call, id)["arn"]
        if old.keys() - new.keys():
            call("UntagResource", resourceArn=arn, tagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", resourceArn=arn, tags=dict(new))


class Workspace(AmpTable):
    token = "aws:amp/workspace:Workspace"
    operation = "CreateWorkspace"
    parts = (Part(("alias",), "set_alias", at_create=False),)
    tagging = Tagging("tags", "map")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["workspaceId"])

    def set_alias(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("UpdateWorkspaceAlias", workspaceId=id, alias=new.get("alias"))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("DescribeWorkspace", workspaceId=id)["workspace"])

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteWorkspace", workspaceId=id)


class Scraper(AmpTable):
    token = "aws:amp/scraper:Scraper"
    operation = "CreateScraper"
    names = {"source.eks": "eksConfiguration", "destination.amp": "ampConfiguration"}
    answer_names = {**names, "scrapeConfiguration": ""}
    parts = (Part(("alias", "scrapeConfiguration", "destination"), "change", at_create=False),)
    tagging = Tagging("tags", "map")

    def request(self, inputs: Values) -> dict[str, Any]:
        wrapped = {"configurationBlob": inputs["scrapeConfiguration"]}
        return super().request({**inputs, "scrapeConfiguration": wrapped})

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["scraperId"])

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        request = self.request(new)
        changed = {
            name: request.get(name)
            for name in ("alias", "scrapeConfiguration", "destination")
            if new.get(name) != old.get(name)
        }
        call("UpdateScraper", scraperId=id, **changed)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("DescribeScraper", scraperId=id)["scraper"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        blob = answer["scrapeConfiguration"]["configurationBlob"]
        return {"scrapeConfiguration": blob.decode() if isinstance(blob, bytes) else blob}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteScraper", scraperId=id)


class RuleGroupNamespace(AmpTable):
    token = "aws:amp/ruleGroupNamespace:RuleGroupNamespace"
    operation = "CreateRuleGroupsNamespace"
    parts = (Part(("data",), "put", at_create=False),)
    tagging = Tagging("tags", "map")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return f"{inputs['workspaceId']}/{inputs['name']}"

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("PutRuleGroupsNamespace", **_where(id), data=new["data"].encode())

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call("DescribeRuleGroupsNamespace", **_where(id))["ruleGroupsNamespace"])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"workspaceId": id.partition("/")[0]}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteRuleGroupsNamespace", **_where(id))


class AlertManagerDefinition(AmpTable):
    token = "aws:amp/alertManagerDefinition:AlertManagerDefinition"
    operation = "CreateAlertManagerDefinition"
    names = {"definition": "data"}
    answer_names = {"definition": "data"}
    parts = (Part(("definition",), "put", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["workspaceId"])

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("PutAlertManagerDefinition", workspaceId=id, data=new["definition"].encode())

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = call("DescribeAlertManagerDefinition", workspaceId=id)["alertManagerDefinition"]
        return {**found, "workspaceId": id}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteAlertManagerDefinition", workspaceId=id)


def _where(id: str) -> dict[str, str]:
    workspace, _, name = id.partition("/")
    return {"workspaceId": workspace, "name": name}


TABLES = (Workspace, Scraper, RuleGroupNamespace, AlertManagerDefinition)
