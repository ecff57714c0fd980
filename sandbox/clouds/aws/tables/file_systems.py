"""EFS and FSx for Lustre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.clouds.aws import mapping, model
from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging, only_one
from sandbox.clouds.tables import Autoname, NotFoundError, Values


class ElasticFileSystem(AwsTable):
    token = "aws:efs/fileSystem:FileSystem"
    service, operation = "efs", "CreateFileSystem"
    # The token makes the creation happen once; the provider makes one up.
    autoname = Autoname("creationToken", max_length=64)
    answer_names = {"arn": "FileSystemArn", "lifecyclePolicies": "", "protection": ""}
    parts = (Part(("throughputMode", "provisionedThroughputInMibps"), "set_throughput", at_create=False),)
    tagging = Tagging("Tags", "list")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["FileSystemId"])

    def set_throughput(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(
            "UpdateFileSystem",
            FileSystemId=id,
            ThroughputMode=new.get("throughputMode", "bursting"),
            ProvisionedThroughputInMibps=new.get("provisionedThroughputInMibps"),
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeFileSystems", FileSystemId=id)["FileSystems"], id)
        return {name: value for name, value in found.items() if name not in ("SizeInBytes", "NumberOfMountTargets")}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"dnsName": f"{id}.efs.{self.account.region}.amazonaws.com"}

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        if old.keys() - new.keys():
            call("UntagResource", ResourceId=id, TagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", ResourceId=id, Tags=[{"Key": k, "Value": v} for k, v in sorted(new.items())])

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteFileSystem", FileSystemId=id)


class MountTarget(AwsTable):
    token = "aws:efs/mountTarget:MountTarget"
    service, operation = "efs", "CreateMountTarget"
    answer_names = {"availabilityZoneName": "AvailabilityZoneName"}
    parts = (Part(("securityGroups",), "set_groups", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["MountTargetId"])

    def set_groups(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("ModifyMountTargetSecurityGroups", MountTargetId=id, SecurityGroups=new.get("securityGroups") or [])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeMountTargets", MountTargetId=id)["MountTargets"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        system, region = answer["FileSystemId"], self.account.region
        groups = call("DescribeMountTargetSecurityGroups", MountTargetId=id)["SecurityGroups"]
        return {
            "securityGroups": groups,
            "dnsName": f"{system}.efs.{region}.amazonaws.com",
            "mountTargetDnsName": f"{answer.get('AvailabilityZoneName')}.{system}.efs.{region}.amazonaws.com",
            "fileSystemArn": f"arn:aws:elasticfilesystem:{region}:{answer['OwnerId']}:file-system/{system}",
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteMountTarget", MountTargetId=id)


class _Fsx(AwsTable):
    service = "fsx"
    tagging = Tagging("Tags", "list")

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        arn = self.describe(call, id)["ResourceARN"]
        if old.keys() - new.keys():
            call("UntagResource", ResourceARN=arn, TagKeys=sorted(old.keys() - new.keys()))
        if new and new != old:
            call("TagResource", ResourceARN=arn, Tags=[{"Key": k, "Value": v} for k, v in sorted(new.items())])


class LustreFileSystem(_Fsx):
    token = "aws:fsx/lustreFileSystem:LustreFileSystem"
    operation = "CreateFileSystem"
    fixed = {"FileSystemType": "LUSTRE"}
    answer_names = {"arn": "ResourceARN", "dnsName": "DNSName"}
    updatable_lustre = (
        "perUnitStorageThroughput",
        "weeklyMaintenanceStartTime",
        "automaticBackupRetentionDays",
        "dailyAutomaticBackupStartTime",
        "dataCompressionType",
        "autoImportPolicy",
    )
    parts = (Part(("storageCapacity", *updatable_lustre), "change", at_create=False),)
    provider_only = frozenset({"skipFinalBackup", "finalBackupTags"})

    def request(self, inputs: Values) -> dict[str, Any]:
        members = model.operation(self.service, self.operation).input_shape.members
        lustre_members = members["LustreConfiguration"].members
        of_lustre = {name for name in inputs if any(name.lower() == member.lower() for member in lustre_members)}
        skip = {*self.provider_only, "tags", "region"}
        outside = {name: value for name, value in inputs.items() if name not in of_lustre}
        shape = model.operation(self.service, self.operation).input_shape
        lustre = mapping.request({name: inputs[name] for name in of_lustre}, members["LustreConfiguration"], names={})
        tags = self.tagging.members(self.all_tags(inputs)) if self.tagging else {}
        return {
            **self.fixed,
            **mapping.request(outside, shape, names={}, skip=skip),
            "LustreConfiguration": lustre,
            **tags,
        }

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["FileSystem"]["FileSystemId"])

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        changed = {name: new[name] for name in self.updatable_lustre if name in new and new.get(name) != old.get(name)}
        shape = model.operation(self.service, "UpdateFileSystem").input_shape.members["LustreConfiguration"]
        lustre = mapping.request(changed, shape, names={})
        size = new["storageCapacity"] if new.get("storageCapacity") != old.get("storageCapacity") else None
        call("UpdateFileSystem", FileSystemId=id, StorageCapacity=size, LustreConfiguration=lustre or None)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeFileSystems", FileSystemIds=[id])["FileSystems"], id)
        return {**found.get("LustreConfiguration", {}), **found}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        backup = {"SkipFinalBackup": properties.get("skipFinalBackup", True)}
        self.caller(inputs)("DeleteFileSystem", FileSystemId=id, LustreConfiguration=backup)


class DataRepositoryAssociation(_Fsx):
    token = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    operation = "CreateDataRepositoryAssociation"
    answer_names = {"arn": "ResourceARN"}
    parts = (Part(("importedFileChunkSize", "s3"), "change", at_create=False),)
    provider_only = frozenset({"deleteDataInFilesystem"})

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["Association"]["AssociationId"])

    def change(self, call: Caller, id: str, old: Values, new: Values) -> None:
        request = self.request(new)
        call(
            "UpdateDataRepositoryAssociation",
            AssociationId=id,
            ImportedFileChunkSize=request.get("ImportedFileChunkSize"),
            S3=request.get("S3"),
        )

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeDataRepositoryAssociations", AssociationIds=[id])["Associations"], id)
        if found.get("Lifecycle") == "DELETING":
            raise NotFoundError("DataRepositoryAssociationNotFound", f"{id} is deleted")
        return found

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"associationId": id}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        clean = properties.get("deleteDataInFilesystem", False)
        self.caller(inputs)("DeleteDataRepositoryAssociation", AssociationId=id, DeleteDataInFileSystem=clean)


TABLES = (ElasticFileSystem, MountTarget, LustreFileSystem, DataRepositoryAssociation)
