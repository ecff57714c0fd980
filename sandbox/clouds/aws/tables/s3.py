"""Buckets and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sandbox.clouds.aws import mapping, model
from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging
from sandbox.clouds.aws.tables.iam import as_json, same_document
from sandbox.clouds.tables import Autoname, NotFoundError, Values


class Bucket(AwsTable):
    token = "aws:s3/bucket:Bucket"
    service, operation = "s3", "CreateBucket"
    autoname = Autoname("bucket", max_length=63, lower=True, prefix_property="bucketPrefix")
    provider_only = frozenset({"forceDestroy", "bucketPrefix"})
    tagging = Tagging("Tags", "list")
    tags_apart = True

    def request(self, inputs: Values) -> dict[str, Any]:
        region = inputs.get("region", self.account.region)
        place = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        return {**super().request(inputs), **place}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["bucket"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        call("HeadBucket", Bucket=id)
        try:
            tags = call("GetBucketTagging", Bucket=id)["TagSet"]
        except NotFoundError:
            tags = []
        return {"Bucket": id, "Tags": tags}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        region = self.account.region
        return {
            "arn": f"arn:aws:s3:::{id}",
            "bucketDomainName": f"{id}.s3.amazonaws.com",
            "bucketRegionalDomainName": f"{id}.s3.{region}.amazonaws.com",
            "bucketRegion": region,
        }

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        if new and new != old:
            call(
                "PutBucketTagging",
                Bucket=id,
                Tagging={"TagSet": [{"Key": k, "Value": v} for k, v in sorted(new.items())]},
            )
        elif old and not new:
            call("DeleteBucketTagging", Bucket=id)

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        if properties.get("forceDestroy"):
            listed = call("ListObjectVersions", Bucket=id)
            for version in [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]:
                call("DeleteObject", Bucket=id, Key=version["Key"], VersionId=version["VersionId"])
        call("DeleteBucket", Bucket=id)


class _Setting(AwsTable):
    """One setting of a bucket: put, read and removed as a whole."""

    service = "s3"
    member: ClassVar[str]
    """Of the put request: where the setting goes."""
    get: ClassVar[str]
    remove: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    """Inputs that make up the setting."""

    def __init_subclass__(cls) -> None:
        cls.parts = (Part(cls.settings, "put", at_create=False),)

    def request(self, inputs: Values) -> dict[str, Any]:
        shape = model.operation(self.service, self.operation).input_shape.members[self.member]
        own = {
            name: value
            for name, value in inputs.items()
            if name not in ("bucket", "region", "expectedBucketOwner", *self.provider_only)
        }
        return {"Bucket": inputs["bucket"], self.member: mapping.request(own, shape, names=self.names)}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["bucket"])

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(self.operation, **self.request(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return dict(call(self.get, Bucket=id)[self.member])

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"bucket": id}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)(self.remove, Bucket=id)


class OwnershipControls(_Setting):
    token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
    operation, get, remove = "PutBucketOwnershipControls", "GetBucketOwnershipControls", "DeleteBucketOwnershipControls"
    member, settings = "OwnershipControls", ("rule",)


class PublicAccessBlock(_Setting):
    token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    operation, get, remove = "PutPublicAccessBlock", "GetPublicAccessBlock", "DeletePublicAccessBlock"
    member = "PublicAccessBlockConfiguration"
    settings = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    provider_only = frozenset({"skipDestroy"})


class Encryption(_Setting):
    token = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    operation, get, remove = "PutBucketEncryption", "GetBucketEncryption", "DeleteBucketEncryption"
    member, settings = "ServerSideEncryptionConfiguration", ("rules",)
    names = {
        "rules.applyServerSideEncryptionByDefault.sseAlgorithm": "SSEAlgorithm",
        "rules.applyServerSideEncryptionByDefault.kmsMasterKeyId": "KMSMasterKeyID",
    }
    answer_names = names


class Versioning(_Setting):
    token = "aws:s3/bucketVersioning:BucketVersioning"
    operation, get, remove = "PutBucketVersioning", "GetBucketVersioning", ""
    member, settings = "VersioningConfiguration", ("versioningConfiguration", "mfa")

    def request(self, inputs: Values) -> dict[str, Any]:
        shape = model.operation(self.service, self.operation).input_shape.members[self.member]
        made = {
            "Bucket": inputs["bucket"],
            self.member: mapping.request(inputs["versioningConfiguration"], shape, names={"mfaDelete": "MFADelete"}),
        }
        return {**made, **({"MFA": inputs["mfa"]} if "mfa" in inputs else {})}

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        told = call("GetBucketVersioning", Bucket=id)
        if "Status" not in told:
            raise NotFoundError("NoSuchVersioning", f"versioning of {id} was never set")
        return {"versioningConfiguration": told}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        # Versioning can't be taken back, only suspended.
        self.caller(inputs)("PutBucketVersioning", Bucket=id, VersioningConfiguration={"Status": "Suspended"})


class Lifecycle(_Setting):
    token = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    operation, get, remove = (
        "PutBucketLifecycleConfiguration",
        "GetBucketLifecycleConfiguration",
        "DeleteBucketLifecycle",
    )
    member, settings = "LifecycleConfiguration", ("rules", "transitionDefaultMinimumObjectSize")
    names = {"rules.id": "ID"}
    answer_names = {"rules.id": "ID"}

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return call(self.get, Bucket=id)


class Policy(AwsTable):
    token = "aws:s3/bucketPolicy:BucketPolicy"
    service, operation = "s3", "PutBucketPolicy"
    parts = (Part(("policy",), "put", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(inputs["bucket"])

    def put(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call(self.operation, **self.request(new))

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return {"Bucket": id, "Policy": as_json(call("GetBucketPolicy", Bucket=id)["Policy"])}

    def _found(self, live: Values, inputs: Values) -> Any:
        live["policy"] = same_document(inputs.get("policy"), live["policy"])
        return super()._found(live, inputs)

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteBucketPolicy", Bucket=id)


TABLES = (Bucket, OwnershipControls, PublicAccessBlock, Encryption, Versioning, Lifecycle, Policy)
