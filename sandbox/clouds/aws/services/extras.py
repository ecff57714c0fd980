"""Single calls that moto lacks: parts of FSx, CloudWatch Logs, Managed Prometheus and Auto Scaling."""

from __future__ import annotations

from typing import Any

import yaml
from moto.elbv2.models import elbv2_backends

from sandbox.clouds.aws.api import ACCOUNT, Call
from sandbox.clouds.aws.services.support import arn, hexadecimal, refuse, require_groups, subnets
from sandbox.clouds.clock import moment

Document = dict[str, Any]


class FileSystems:
    """FSx for Lustre: its links with buckets, and the sizes that it takes."""

    service = "fsx"
    STEPS = (1200, 2400)
    THROUGHPUT = (125, 250, 500, 1000)

    def __init__(self) -> None:
        self.links: dict[str, Document] = {}
        self.systems: dict[str, Document] = {}

    def create_file_system(self, call: Call) -> Document:
        params = call.params
        lustre, size = params.get("LustreConfiguration", {}), params.get("StorageCapacity", 0)
        if size not in self.STEPS and size % 2400:
            raise refuse(
                "BadRequest", f"storage capacity {size} GiB: FSx for Lustre takes 1200, 2400 and multiples of 2400"
            )
        if (
            lustre.get("DeploymentType") == "PERSISTENT_2"
            and lustre.get("PerUnitStorageThroughput") not in self.THROUGHPUT
        ):
            raise refuse(
                "BadRequest",
                f"throughput {lustre.get('PerUnitStorageThroughput')} MB/s per TiB: PERSISTENT_2 takes {', '.join(map(str, self.THROUGHPUT))}",
            )
        (subnet,) = subnets(call, params["SubnetIds"])
        groups = params.get("SecurityGroupIds", [])
        require_groups(call, groups)
        self._require_lustre_ports(call, groups)
        answer = call.forward()
        id = answer["FileSystem"]["FileSystemId"]
        self.systems[id] = {
            "FileSystemTypeVersion": params.get("FileSystemTypeVersion", "2.10"),
            "VpcId": subnet["VpcId"],
            "OwnerId": ACCOUNT,
            "Lifecycle": "AVAILABLE",
            "CreationTime": call.now,
            "LustreConfiguration": {**lustre, "MountName": id[-8:]},
        }
        return answer

    def describe_file_systems(self, call: Call) -> Document:
        """Moto tells less than FSx does."""
        answer = call.forward()
        for system in answer["FileSystems"]:
            known = self.systems[system["FileSystemId"]]
            lustre = {**system.get("LustreConfiguration", {}), **known["LustreConfiguration"]}
            system.update(known, LustreConfiguration=lustre)
        return answer

    def delete_file_system(self, call: Call) -> Document:
        for id in [id for id, link in self.links.items() if link["FileSystemId"] == call.params["FileSystemId"]]:
            del self.links[id]
        answer = call.forward()
        self.systems.pop(call.params["FileSystemId"], None)
        return answer

    def create_data_repository_association(self, call: Call) -> Document:
        params = {name: value for name, value in call.params.items() if name != "ClientRequestToken"}
        found = call.api.moto("fsx", "DescribeFileSystems", call.region, {"FileSystemIds": [params["FileSystemId"]]})
        deployment = found["FileSystems"][0].get("LustreConfiguration", {}).get("DeploymentType")
        if deployment == "SCRATCH_1":
            raise refuse("BadRequest", f"data repository associations need another deployment type than {deployment}")
        bucket = params["DataRepositoryPath"].removeprefix("s3://").partition("/")[0]
        call.api.moto("s3", "HeadBucket", call.region, {"Bucket": bucket})
        for link in self.links.values():
            if link["FileSystemId"] == params["FileSystemId"] and link.get("FileSystemPath") == params.get(
                "FileSystemPath"
            ):
                raise refuse(
                    "BadRequest", f"{params.get('FileSystemPath')} is linked already by {link['AssociationId']}"
                )
        id = f"dra-{hexadecimal(17)}"
        self.links[id] = {
            **params,
            "AssociationId": id,
            "ResourceARN": arn("fsx", call.region, f"association/{params['FileSystemId']}/{id}"),
            "Lifecycle": "AVAILABLE",
            "CreationTime": call.now,
            "ImportedFileChunkSize": params.get("ImportedFileChunkSize", 1024),
        }
        return {"Association": self.links[id]}

    def describe_data_repository_associations(self, call: Call) -> Document:
        wanted = call.params.get("AssociationIds") or sorted(self.links)
        return {"Associations": [self._link(id) for id in wanted]}

    def update_data_repository_association(self, call: Call) -> Document:
        link = self._link(call.params["AssociationId"])
        link.update({name: call.params[name] for name in ("ImportedFileChunkSize", "S3") if name in call.params})
        return {"Association": link}

    def delete_data_repository_association(self, call: Call) -> Document:
        self._link(call.params["AssociationId"])
        del self.links[call.params["AssociationId"]]
        return {"AssociationId": call.params["AssociationId"], "Lifecycle": "DELETING"}

    def _link(self, id: str) -> Document:
        if id not in self.links:
            raise refuse("DataRepositoryAssociationNotFound", f"{id} does not exist")
        return self.links[id]

    def _require_lustre_ports(self, call: Call, groups: list[str]) -> None:
        """FSx refuses groups that don't let Lustre's port through (FSx for Lustre guide, limit-access-security-groups)."""
        if not groups:
            return
        found = call.api.moto("ec2", "DescribeSecurityGroups", call.region, {"GroupIds": groups})["SecurityGroups"]
        rules = [rule for group in found for rule in group["IpPermissions"]]
        if not any(
            rule["IpProtocol"] == "-1" or rule.get("FromPort", 0) <= 988 <= rule.get("ToPort", 0) for rule in rules
        ):
            raise refuse(
                "InvalidNetworkSettings",
                f"The security groups {', '.join(groups)} do not permit Lustre LNET network traffic on port 988",
            )


class LogKeys:
    """Encryption of log groups."""

    service = "logs"

    def __init__(self) -> None:
        self.keys: dict[tuple[str, str], str] = {}

    def create_log_group(self, call: Call) -> Document:
        key = call.params.get("kmsKeyId")
        if key:
            _require_key_for_logs(call, key)
        answer = call.forward()
        if key:
            self.keys[(call.region, call.params["logGroupName"])] = key
        return answer

    def describe_log_groups(self, call: Call) -> Document:
        answer = call.forward()
        for group in answer["logGroups"]:
            group.pop("kmsKeyId", None)
            key = self.keys.get((call.region, group["logGroupName"]))
            if key:
                group["kmsKeyId"] = key
        return answer

    def associate_kms_key(self, call: Call) -> Document:
        _require_key_for_logs(call, call.params["kmsKeyId"])
        self.keys[(call.region, call.params["logGroupName"])] = call.params["kmsKeyId"]
        return {}

    def disassociate_kms_key(self, call: Call) -> Document:
        self.keys.pop((call.region, call.params["logGroupName"]), None)
        return {}

    def delete_log_group(self, call: Call) -> Document:
        answer = call.forward()
        self.keys.pop((call.region, call.params["logGroupName"]), None)
        return answer


def _require_key_for_logs(call: Call, key: str) -> None:
    """CloudWatch Logs refuses a key whose policy does not let it in (CloudWatch Logs guide, encrypt-log-data-kms)."""
    call.api.moto("kms", "DescribeKey", call.region, {"KeyId": key})
    policy = call.api.moto("kms", "GetKeyPolicy", call.region, {"KeyId": key, "PolicyName": "default"})["Policy"]
    if f"logs.{call.region}.amazonaws.com" not in policy:
        raise refuse(
            "AccessDeniedException",
            f"The specified KMS key does not exist or is not allowed to be used with LogGroup {call.params['logGroupName']}",
        )


class Prometheus:
    """Managed Prometheus: collectors and alert managers."""

    service = "amp"

    def __init__(self) -> None:
        self.scrapers: dict[str, Document] = {}
        self.alert_managers: dict[str, Document] = {}

    def create_scraper(self, call: Call) -> Document:
        params = {name: value for name, value in call.params.items() if name != "clientToken"}
        self._check_source(call, params["source"])
        workspace = params["destination"]["ampConfiguration"]["workspaceArn"].rsplit("/", 1)[-1]
        call.api.moto("amp", "DescribeWorkspace", call.region, {"workspaceId": workspace})
        _require_yaml(params["scrapeConfiguration"]["configurationBlob"], key="scrape_configs")
        id = f"s-{hexadecimal(8)}-{hexadecimal(4)}-{hexadecimal(4)}-{hexadecimal(12)}"
        self.scrapers[id] = {
            **params,
            "scraperId": id,
            "arn": arn("aps", call.region, f"scraper/{id}"),
            "roleArn": arn(
                "iam",
                "",
                f"role/aws-service-role/scraper.aps.amazonaws.com/AWSServiceRoleForAmazonPrometheusScraper_{hexadecimal(16)}",
            ),
            "status": {"statusCode": "ACTIVE"},
            "createdAt": call.now,
            "lastModifiedAt": call.now,
            "tags": params.get("tags", {}),
        }
        return {member: self.scrapers[id][member] for member in ("scraperId", "arn", "status")}

    def describe_scraper(self, call: Call) -> Document:
        return {"scraper": self._scraper(call.params["scraperId"])}

    def update_scraper(self, call: Call) -> Document:
        scraper = self._scraper(call.params["scraperId"])
        if "scrapeConfiguration" in call.params:
            _require_yaml(call.params["scrapeConfiguration"]["configurationBlob"], key="scrape_configs")
        members = ("alias", "scrapeConfiguration", "destination", "roleConfiguration")
        scraper.update({name: call.params[name] for name in members if name in call.params})
        return {member: scraper[member] for member in ("scraperId", "arn", "status")}

    def delete_scraper(self, call: Call) -> Document:
        self._scraper(call.params["scraperId"])
        del self.scrapers[call.params["scraperId"]]
        return {"scraperId": call.params["scraperId"], "status": {"statusCode": "DELETING"}}

    def tag_resource(self, call: Call) -> Document:
        scraper = self._by_arn(call.params["resourceArn"])
        if scraper is None:
            return call.forward()
        scraper["tags"].update(call.params["tags"])
        return {}

    def untag_resource(self, call: Call) -> Document:
        scraper = self._by_arn(call.params["resourceArn"])
        if scraper is None:
            return call.forward()
        for name in call.params["tagKeys"]:
            scraper["tags"].pop(name, None)
        return {}

    def create_alert_manager_definition(self, call: Call) -> Document:
        workspace = call.params["workspaceId"]
        call.api.moto("amp", "DescribeWorkspace", call.region, {"workspaceId": workspace})
        if workspace in self.alert_managers:
            raise refuse("ConflictException", f"workspace {workspace} has an alert manager definition already")
        return self._define(call)

    def put_alert_manager_definition(self, call: Call) -> Document:
        self._definition(call.params["workspaceId"])
        return self._define(call)

    def describe_alert_manager_definition(self, call: Call) -> Document:
        return {"alertManagerDefinition": self._definition(call.params["workspaceId"])}

    def delete_alert_manager_definition(self, call: Call) -> Document:
        self._definition(call.params["workspaceId"])
        del self.alert_managers[call.params["workspaceId"]]
        return {}

    def delete_workspace(self, call: Call) -> Document:
        answer = call.forward()
        self.alert_managers.pop(call.params["workspaceId"], None)
        return answer

    def _define(self, call: Call) -> Document:
        _require_yaml(call.params["data"], key="alertmanager_config")
        status = {"statusCode": "ACTIVE"}
        self.alert_managers[call.params["workspaceId"]] = {
            "data": call.params["data"],
            "status": status,
            "createdAt": call.now,
            "modifiedAt": call.now,
        }
        return {"status": status}

    def _definition(self, workspace: str) -> Document:
        if workspace not in self.alert_managers:
            raise refuse("ResourceNotFoundException", f"workspace {workspace} has no alert manager definition")
        return self.alert_managers[workspace]

    def _scraper(self, id: str) -> Document:
        if id not in self.scrapers:
            raise refuse("ResourceNotFoundException", f"scraper {id} does not exist")
        return self.scrapers[id]

    def _by_arn(self, wanted: str) -> Document | None:
        return next((scraper for scraper in self.scrapers.values() if scraper["arn"] == wanted), None)

    def _check_source(self, call: Call, source: Document) -> None:
        eks = source.get("eksConfiguration", {})
        found = subnets(call, eks.get("subnetIds", []))
        if len({subnet["AvailabilityZone"] for subnet in found}) < 2:
            raise refuse("ValidationException", "a scraper's subnets must be in at least two Availability Zones")
        require_groups(call, eks.get("securityGroupIds", []))
        call.api.answer("eks", "DescribeCluster", call.region, {"name": eks["clusterArn"].rsplit("/", 1)[-1]})


class ScheduledActions:
    """Auto Scaling takes no action in the past."""

    service = "autoscaling"

    def put_scheduled_update_group_action(self, call: Call) -> Document:
        params = call.params
        start = params.get("StartTime")
        if start is not None and moment(str(start)) < call.now:
            raise refuse("ValidationError", "Given start time is in the past")
        sizes = [params[name] for name in ("MinSize", "DesiredCapacity", "MaxSize") if params.get(name) is not None]
        if sizes != sorted(sizes):
            raise refuse(
                "ValidationError",
                f"desired capacity {params.get('DesiredCapacity')} must lie between minimum {params.get('MinSize')} and maximum {params.get('MaxSize')}",
            )
        return call.forward()


class LoadBalancers:
    """Attributes of target groups."""

    service = "elbv2"
    DELAY, LONGEST = "deregistration_delay.timeout_seconds", "3600"

    def modify_target_group_attributes(self, call: Call) -> Document:
        """Moto refuses the longest delay although its own message calls it allowed."""
        longest = {"Key": self.DELAY, "Value": self.LONGEST}
        given = call.params["Attributes"]
        answer = call.forward(Attributes=[each for each in given if each != longest])
        if longest in given:
            kept = elbv2_backends[ACCOUNT][call.region].target_groups[call.params["TargetGroupArn"]]
            kept.attributes[self.DELAY] = self.LONGEST
        return answer


def _require_yaml(text: bytes | str, *, key: str) -> None:
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise refuse("ValidationException", f"not YAML: {error}") from error
    if not isinstance(parsed, dict) or key not in parsed:
        raise refuse("ValidationException", f"the document has no {key}")
