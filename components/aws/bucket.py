"""The bucket that holds the verified weights: kept when the stack goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from components.aws.documents import tls_only

ABANDONED_UPLOAD_DAYS = 7
"""After this many days S3 drops the parts of an upload that nobody finished; they are billed until then."""

OLD_VERSION_DAYS = 30
"""How long an overwritten object can be brought back."""


@dataclass(frozen=True, kw_only=True)
class WeightsBucketArgs:
    """name: global bucket name, or None for a generated one. keep: protect it and leave it behind on destroy.

    kms_key: ARN of the key that objects are encrypted with; None: S3's own keys.
    """

    name: str | None = None
    kms_key: str | None = None
    keep: bool = True


class WeightsBucket(pulumi.ComponentResource):
    """A private, encrypted, versioned bucket. Staging 1.5 TB takes long, so `destroy` leaves it unless told otherwise.

    bucket: its name. arn: its ARN. ready: the last of its settings; what writes to the bucket waits for it.
    """

    def __init__(self, name: str, *, args: WeightsBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:WeightsBucket", name, {}, opts)
        kept = pulumi.ResourceOptions(parent=self, protect=args.keep, retain_on_delete=args.keep)
        child = pulumi.ResourceOptions(parent=self, retain_on_delete=args.keep)
        bucket = aws.s3.Bucket(name, bucket=args.name, force_destroy=not args.keep, opts=kept)
        aws.s3.BucketOwnershipControls(
            f"{name}-owner", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=child
        )
        closed = aws.s3.BucketPublicAccessBlock(
            f"{name}-closed",
            bucket=bucket.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=child,
        )
        encrypted = aws.s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encrypted",
            bucket=bucket.id,
            rules=[_encryption(args.kms_key)],
            opts=child,
        )
        versioned = aws.s3.BucketVersioning(
            f"{name}-versioned", bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=child
        )
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.id,
            rules=[
                {
                    "id": "abandoned-uploads",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "abort_incomplete_multipart_upload": {"days_after_initiation": ABANDONED_UPLOAD_DAYS},
                },
                {
                    "id": "old-versions",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "noncurrent_version_expiration": {"noncurrent_days": OLD_VERSION_DAYS},
                },
            ],
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[versioned])),
        )
        # S3 refuses a policy while it still decides whether public policies are allowed: one after the other.
        # What is written before the bucket is encrypted with its key stays without it.
        self.ready = aws.s3.BucketPolicy(
            f"{name}-tls",
            bucket=bucket.id,
            policy=bucket.arn.apply(tls_only),
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[closed, encrypted])),
        )
        self.bucket: pulumi.Output[str] = bucket.bucket
        self.arn: pulumi.Output[str] = bucket.arn
        self.register_outputs({"bucket": self.bucket, "arn": self.arn})


def _encryption(kms_key: str | None) -> dict[str, Any]:
    """How S3 encrypts objects. With a bucket key it asks KMS for one key a while, not for one an object."""
    if kms_key is None:
        return {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": kms_key},
        "bucket_key_enabled": True,
    }
