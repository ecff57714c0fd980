"""IAM and bucket policy documents, each with the least that its user needs. Pure; no Pulumi."""

from __future__ import annotations

import json
from typing import Any

Statement = dict[str, Any]


def document(*statements: Statement) -> str:
    """A policy document as JSON text with stable key order, so that an unchanged policy is no diff."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, sort_keys=True)


def allow(*actions: str, resources: list[str], condition: dict[str, Any] | None = None) -> Statement:
    """An Allow statement."""
    statement: Statement = {"Effect": "Allow", "Action": list(actions), "Resource": resources}
    return {**statement, "Condition": condition} if condition else statement


def trust(service: str, *, tag_session: bool = False) -> str:
    """Who may assume a role: one AWS service; Pod Identity and EKS also tag the session."""
    actions = ["sts:AssumeRole", "sts:TagSession"] if tag_session else ["sts:AssumeRole"]
    return document({"Effect": "Allow", "Action": actions, "Principal": {"Service": service}})


def use_key_in_s3(key_arn: str | None, *actions: str) -> list[Statement]:
    """Use of the key that a bucket's objects are encrypted with, through S3 only; nothing where there is no such key."""
    if key_arn is None:
        return []
    region = key_arn.split(":")[3]
    condition = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
    return [allow(*actions, resources=[key_arn], condition=condition)]


def read_bucket(bucket_arn: str, kms_key: str | None = None) -> str:
    """Read objects and list the bucket: what hydration and engines need."""
    return document(
        allow("s3:ListBucket", "s3:GetBucketLocation", resources=[bucket_arn]),
        allow("s3:GetObject", resources=[f"{bucket_arn}/*"]),
        *use_key_in_s3(kms_key, "kms:Decrypt"),
    )


def write_bucket(bucket_arn: str, kms_key: str | None = None) -> str:
    """Stage objects: read, write, and see and end multipart uploads; no deletion of weights, only of the stager's own notes."""
    return document(
        allow("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads", resources=[bucket_arn]),
        allow(
            "s3:GetObject",
            "s3:PutObject",
            "s3:AbortMultipartUpload",
            "s3:ListMultipartUploadParts",
            resources=[f"{bucket_arn}/*"],
        ),
        # Receipts once a copy is complete, and a manifest that its objects contradict.
        allow("s3:DeleteObject", resources=[f"{bucket_arn}/*/.staging/*"]),
        # The parts of a multipart upload are decrypted when they become one object (S3 guide, mpuoverview, permissions).
        *use_key_in_s3(kms_key, "kms:Decrypt", "kms:GenerateDataKey"),
    )


def tls_only(bucket_arn: str) -> str:
    """Bucket policy: no request without TLS, whoever asks."""
    return document(
        {
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [bucket_arn, f"{bucket_arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )


def partition_of(region: str) -> str:
    """The partition that a region's ARNs carry."""
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def logs_may_use(*, account: str, region: str, partition: str) -> str:
    """Key policy: the account administers the key; CloudWatch Logs of this region may use it for its log groups."""
    return document(
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{region}.amazonaws.com"},
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            "Resource": "*",
            "Condition": {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": f"arn:{partition}:logs:{region}:{account}:log-group:*"
                }
            },
        },
    )
