"""Object stores: S3, whatever speaks its protocol, GCS, and a local directory, all through obstore.

Credentials and endpoints come from where the clouds' own tools look: AWS_* variables, profiles, EKS Pod Identity;
Google's application default credentials and GKE workload identity. obstore can't list or drop uploads that a killed
run left open; botocore can.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore import exceptions
from obstore.store import GCSStore, LocalStore, S3Store

from .errors import StoreError, UsageError
from .limits import Patience
from .parts import PartPlan

CREDENTIAL_SECONDS = 600
"""How long obstore may use what botocore gave; botocore renews 15 minutes before the end."""
REQUEST_SECONDS = 300
FULL = re.compile(r"no space left|quota|insufficient ?storage|disk.?full", re.IGNORECASE)
LEFT_BY_LOCAL_UPLOAD = re.compile(r"#\d+$")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An object that is there. size: in bytes."""

    size: int
    e_tag: str | None


class TransientStoreError(StoreError):
    """The store failed in a way that another try may not meet."""


class DeniedError(StoreError):
    """This identity has not the right."""


class Store:
    """The part of one bucket (or directory) below a base path. url: as given."""

    def __init__(self, url: str, *, patience: Patience) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self.scheme, self.bucket = parts.scheme, parts.netloc
        self.base = unquote(parts.path).strip("/")
        limit = timedelta(seconds=min(180.0, patience.give_up))
        backoff = {"init_backoff": timedelta(seconds=min(0.2, patience.first)), "max_backoff": timedelta(seconds=15)}
        common: dict[str, Any] = {
            "retry_config": {"max_retries": 10, "retry_timeout": limit, "backoff": backoff},
            "client_options": {"timeout": f"{REQUEST_SECONDS}s", "connect_timeout": "10s"},
        }
        prefix: dict[str, Any] = {"prefix": self.base} if self.base else {}
        if self.scheme == "s3" and self.bucket:
            self._store: Any = S3Store(self.bucket, **prefix, **_s3_options(common))
        elif self.scheme == "gs" and self.bucket:
            self._store = GCSStore(self.bucket, **prefix, **_gcs_options(common))
        elif self.scheme == "file" and not self.bucket and self.base:
            try:
                self._store = LocalStore(Path("/" + self.base), mkdir=True)
            except OSError as error:
                raise StoreError(
                    f"can't make the directory of {self}: {_short(error)}", remedy="Name one that you may write to"
                ) from None
        else:
            raise UsageError(
                f"store {url!r} is not a place to store",
                remedy="Write s3://BUCKET/BASE, gs://BUCKET/BASE or file:///DIRECTORY",
            )

    def __str__(self) -> str:
        return self.url

    def listing(self, prefix: str) -> dict[str, Stored]:
        """The objects below `prefix`, by path relative to it."""
        found = {}
        with self._translated(f"list {prefix}/"):
            for page in obstore.list(self._store, prefix=prefix):
                for meta in page:
                    path = str(meta["path"]).removeprefix(prefix + "/")
                    found[path] = Stored(size=meta["size"], e_tag=meta["e_tag"])
        return found

    def folders(self, prefix: str = "") -> list[str]:
        """Names of the folders directly below `prefix`."""
        with self._translated(f"list {prefix}/"):
            found = obstore.list_with_delimiter(self._store, prefix=prefix or None)
            return sorted(str(path).rpartition("/")[2] for path in found["common_prefixes"])

    def head(self, path: str) -> Stored | None:
        """Size and tag of an object, or None when there is none."""
        try:
            with self._translated(f"look at {path}", missing_ok=True):
                meta = obstore.head(self._store, path)
        except FileNotFoundError:
            return None
        return Stored(size=meta["size"], e_tag=meta["e_tag"])

    def get(self, path: str) -> bytes | None:
        """A small object, or None when there is none."""
        try:
            with self._translated(f"read {path}", missing_ok=True):
                return bytes(obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None

    def read(self, path: str, offset: int, length: int) -> Any:
        """A buffer with exactly these bytes. Raises FileNotFoundError, StoreError."""
        with self._translated(f"read {path}", missing_ok=True):
            data = obstore.get_range(self._store, path, start=offset, length=length)
        if len(data) != length:
            raise TransientStoreError(f"{self}/{path} gave {len(data)} of {length} bytes", remedy="Run it again")
        return data

    def put(self, path: str, data: Any) -> Stored:
        """Writes an object at once, by one request."""
        with self._translated(f"write {path}"):
            result = obstore.put(self._store, path, data, use_multipart=False)
        return Stored(size=len(data), e_tag=result["e_tag"])

    def put_parts(self, path: str, parts: Iterator[Any], *, size: int, plan: PartPlan) -> Stored:
        """Writes an object part by part. It appears when all parts are in; when `parts` raises, it does not."""
        with self._translated(f"write {path}"):
            result = obstore.put(
                self._store, path, parts, use_multipart=True, chunk_size=plan.size, max_concurrency=plan.behind
            )
        return Stored(size=size, e_tag=result["e_tag"])

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects; one that is not there is no error."""
        for path in paths:
            try:
                with self._translated(f"delete {path}", missing_ok=True):
                    obstore.delete(self._store, path)
            except FileNotFoundError:
                continue

    def drop_open_uploads(self, prefix: str) -> int:
        """Drops uploads below `prefix` that nobody finished, and returns how many. On GCS a bucket rule does it."""
        if self.scheme == "s3":
            return _drop_s3_uploads(self.bucket, "/".join(filter(None, (self.base, prefix))) + "/")
        if self.scheme == "file":
            return _drop_local_uploads(Path("/" + self.base) / prefix)
        return 0

    @contextmanager
    def _translated(self, doing: str, *, missing_ok: bool = False) -> Iterator[None]:
        """Errors of the store as sentences; what a caller's own iterator raised passes.

        missing_ok: a missing object is the caller's to judge (FileNotFoundError); otherwise it is the bucket that is missing.
        """
        what = f"can't {doing} in {self}"
        try:
            yield
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            if "credential provider" in str(error):
                raise StoreError(
                    f"{what}: there are no credentials that it could use ({_short(error)})",
                    remedy="Give the Job's service account a role; on a laptop set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY",
                ) from None
            raise DeniedError(
                f"{what}: access denied ({_short(error)})",
                remedy="Give this identity read, write and list rights on the bucket, and delete rights below .staging/",
            ) from None
        except (exceptions.BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError | exceptions.NotFoundError):
                if missing_ok:
                    raise FileNotFoundError(_short(error)) from None
                if "NoSuchUpload" in str(error):
                    raise TransientStoreError(
                        f"{what}: the upload was dropped by another run that ended", remedy="Run it again"
                    ) from None
                raise StoreError(
                    f"{what}: there is no such bucket ({_short(error)})",
                    remedy="Create it first, or check its name and region",
                ) from None
            if FULL.search(str(error)):
                raise StoreError(
                    f"{what}: it is full ({_short(error)})", remedy="Make room or raise the quota, then run it again"
                ) from None
            raise TransientStoreError(
                f"{what}: {_short(error)}", remedy="Check the store, its address and its credentials; then run it again"
            ) from None


def _s3_options(common: Mapping[str, Any]) -> dict[str, Any]:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    # One by one: in a bulk deletion a missing right is hidden in an answer of 200.
    options: dict[str, Any] = {**common, "credential_provider": _aws_credentials, "disable_bulk_delete": True}
    if endpoint:
        options["endpoint"] = endpoint
        options["client_options"] = {**common["client_options"], "allow_http": endpoint.startswith("http://")}
    if not region and not endpoint:
        raise UsageError(
            "the bucket's region is not known", remedy="Set AWS_REGION, or AWS_ENDPOINT_URL_S3 for another store"
        )
    options["region"] = region or "us-east-1"
    return options


def _gcs_options(common: Mapping[str, Any]) -> dict[str, Any]:
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if not emulator:
        return dict(common)
    options = {**common["client_options"], "allow_http": emulator.startswith("http://")}
    # obstore writes with a token only; an emulator takes any.
    token = {"token": "emulator", "expires_at": None}
    return {**common, "base_url": emulator, "credential_provider": lambda: token, "client_options": options}


def _aws_credentials() -> Any:
    """What botocore finds, for obstore: it also knows profiles, which obstore does not."""
    import botocore.session

    found = botocore.session.get_session().get_credentials()
    if found is None:
        raise LookupError("neither a role, nor keys, nor a profile")
    frozen = found.get_frozen_credentials()
    static = type(found).__name__ == "Credentials"
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": None if static else datetime.now(UTC) + timedelta(seconds=CREDENTIAL_SECONDS),
    }


def _drop_s3_uploads(bucket: str, prefix: str) -> int:
    import botocore.exceptions
    import botocore.session

    dropped = 0
    try:
        client = botocore.session.get_session().create_client(
            "s3", region_name=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        )
        for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
            for upload in page.get("Uploads", []):
                try:
                    client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
                except client.exceptions.NoSuchUpload:
                    continue  # another run has just dropped it
                dropped += 1
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
        raise StoreError(
            f"can't drop open uploads in s3://{bucket}/{prefix}: {_short(error)}",
            remedy="Give this identity s3:ListBucketMultipartUploads and s3:AbortMultipartUpload",
        ) from None
    return dropped


def _drop_local_uploads(directory: Path) -> int:
    left = [path for path in directory.rglob("*") if LEFT_BY_LOCAL_UPLOAD.search(path.name)]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def _short(error: BaseException) -> str:
    """The telling part of an error of the store's client, in one line."""
    text = " ".join(str(error).split("Debug source:")[0].split())
    return text if len(text) <= 300 else text[:140] + " … " + text[-160:]
