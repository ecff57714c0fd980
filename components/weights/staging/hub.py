"""The hub: which files a commit has, and their bytes by range, however often the hub or the network fails on the way.

huggingface_hub lists, authenticates and resolves; urllib3 moves the bytes, in blocks of a size that is chosen here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import urllib3
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url, set_client_factory
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

from .errors import ContentError, HubError, RefusedError, UsageError
from .limits import AdaptiveLimit, Patience, Stop, retry_after
from .manifest import COMMIT, Source, check_path
from .progress import Progress, say
from .proxies import credentials, proxy_for

T = TypeVar("T")
BLOCK = 4 * 1024 * 1024
"""Bytes that are read at once: larger ones take less processor time, a cut connection loses the one that it cut."""
CONNECT_SECONDS, READ_SECONDS = 30.0, 60.0
PROXY_REFUSAL = re.compile(r"\b407\b")
PROXY_REMEDY = "Give its user and password in HTTPS_PROXY and HTTP_PROXY: http://USER:PASSWORD@HOST:PORT"
REFUSALS_IN_A_ROW = 5
"""Fresh addresses that the blob host may refuse one after the other before it is not their age that it dislikes."""


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file as the hub lists it. sha256: of an LFS file; git_blob: id of any other file."""

    path: str
    size: int
    sha256: str | None
    git_blob: str | None


class Transient(Exception):
    """This try failed; the next one may not."""

    def __init__(self, why: str, *, retry_after: float | None = None, refused: bool = False) -> None:
        super().__init__(why)
        self.retry_after, self.refused = retry_after, refused


class Expired(Exception):
    """The address that the hub gave for a file is not accepted (any more)."""


class HubClient:
    """One hub. All its requests share one adaptive limit; `token` is sent to the hub and to nobody else."""

    def __init__(
        self,
        *,
        endpoint: str | None,
        token: str | None,
        connections: int,
        patience: Patience,
        stop: Stop,
        progress: Progress,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        set_client_factory(
            lambda: httpx2.Client(
                follow_redirects=True, timeout=httpx2.Timeout(min(read_seconds, 30.0), connect=CONNECT_SECONDS)
            )
        )
        # False: without a token of its own it must not pick one up from the user's home.
        self._token: str | bool = token or False
        self._api = HfApi(endpoint=endpoint, token=self._token, library_name="staging")
        self.endpoint: str = self._api.endpoint
        self.limit = AdaptiveLimit(connections, stop=stop)
        self._patience, self._stop, self._progress = patience, stop, progress
        self._http = Downloads(connections=connections, read_seconds=read_seconds)
        self._addresses: dict[tuple[Source, str], str] = {}
        self._lock = threading.Lock()

    def listing(self, source: Source) -> list[RemoteFile]:
        """The wanted files. Raises RefusedError when there are none, UsageError when the revision is a branch."""
        info = self._patiently(
            lambda: self._api.model_info(source.repo, revision=source.revision, timeout=READ_SECONDS), source
        )
        if not COMMIT.fullmatch(source.revision):
            raise UsageError(
                f"revision {source.revision!r} of {source.repo} is a branch or tag: what it means can change",
                remedy=f"Pin the commit that it is now: {info.sha}",
            )
        if info.sha != source.revision:
            raise RefusedError(
                f"the hub answers for commit {info.sha} of {source.repo}, not {source.revision}",
                remedy="Name a commit of the repository, not another object",
            )
        tree = self._patiently(
            lambda: list(self._api.list_repo_tree(source.repo, recursive=True, revision=source.revision)), source
        )
        files = [_remote(entry) for entry in tree if isinstance(entry, RepoFile)]
        wanted = list(
            filter_repo_objects(
                files,
                allow_patterns=list(source.allow) or None,
                ignore_patterns=list(source.ignore) or None,
                key=lambda file: file.path,
            )
        )
        if not wanted:
            raise RefusedError(
                f"{source} has no files that are wanted ({len(files)} before the patterns)",
                remedy="Check the repository and the allow and ignore patterns",
            )
        for file in wanted:
            check_path(file.path)
        return wanted

    def fetch(self, source: Source, file: RemoteFile, offset: int, length: int) -> list[bytes]:
        """The file's bytes [offset, offset + length) in blocks. A cut connection costs only the block that it cut.

        Raises ContentError when the file is not the listed one any more, RefusedError, HubError.
        """
        done = refusals = failures = 0
        waited = 0.0
        blocks: list[bytes] = []
        while done < length:
            before = done
            try:
                address = self._address(source, file)
                with self.limit.slot():
                    for block in self._http.stream(
                        address, self._auth(address), file=file, offset=offset + done, wanted=length - done
                    ):
                        blocks.append(block)
                        done += len(block)
                        self._stop.check()
                self.limit.succeeded()
                continue
            except Expired as error:
                with self._lock:
                    self._addresses.pop((source, file.path), None)
                refusals = 1 if done > before else refusals + 1
                if refusals >= REFUSALS_IN_A_ROW:
                    raise HubError(
                        f"{_host(address)} refuses {file.path} ({error}), {refusals} fresh addresses in a row",
                        remedy="Check that a proxy or firewall lets the hub's download hosts through",
                    ) from None
                trouble = Transient(str(error))
            except Transient as error:
                trouble = error
            failures, waited = (1, 0.0) if done > before else (failures + 1, waited)
            waited += self._wait(trouble, failures, waited, f"{source.repo}/{file.path}")
        return blocks

    def _wait(self, trouble: Transient, failures: int, waited: float, what: str) -> float:
        """Pauses before the next try and returns for how long. Raises HubError when patience is at its end."""
        if trouble.refused:
            self.limit.refused(trouble.retry_after)
        if waited >= self._patience.give_up:
            raise HubError(
                f"{what}: no progress in {waited:.0f} s, last: {trouble}",
                remedy="Check the hub's status and the way to it, then run it again: finished files stay",
            ) from None
        asked = trouble.retry_after or 0.0
        if asked > self._patience.give_up:
            raise HubError(
                f"{what}: {trouble} and asks for a pause of {asked:.0f} s, more than --give-up-seconds",
                remedy="Run it again after that pause: finished files stay; a token (HF_TOKEN) may have a higher limit",
            ) from None
        self._progress.retried()
        pause = max(self._patience.pause(failures), asked)
        if failures in (3, 10) or pause > 30:
            say(f"{what}: {trouble}; trying again in {pause:.0f} s")
        self._stop.sleep(pause)
        return pause

    def _address(self, source: Source, file: RemoteFile) -> str:
        """Where the file's bytes are: the hub itself, or a signed address elsewhere. Kept until it is refused."""
        with self._lock:
            if known := self._addresses.get((source, file.path)):
                return known
        url = hf_hub_url(source.repo, file.path, revision=source.revision, endpoint=self.endpoint)
        with self.limit.slot():
            found = self._once(lambda: get_hf_file_metadata(url, token=self._token, timeout=CONNECT_SECONDS), source)
        expected = file.sha256 or file.git_blob
        if (
            (found.size is not None and found.size != file.size)
            or (found.etag is not None and found.etag != expected)
            or (found.commit_hash is not None and found.commit_hash != source.revision)
        ):
            raise ContentError(
                f"{file.path} changed since it was listed: {found.size} bytes, id {found.etag}, commit {found.commit_hash}; "
                f"listed were {file.size} bytes, id {expected}, commit {source.revision}",
                remedy="Run it again; when it stays so, the hub is at odds with itself: report it to the repository's owner",
            )
        with self._lock:
            self._addresses[source, file.path] = found.location
        return found.location

    def _auth(self, address: str) -> dict[str, str]:
        same = _origin(address) == _origin(self.endpoint)
        return {"Authorization": f"Bearer {self._token}"} if self._token and same else {}

    def _patiently(self, call: Callable[[], T], source: Source) -> T:
        waited, failures = 0.0, 0
        while True:
            try:
                with self.limit.slot():
                    return self._once(call, source)
            except Transient as trouble:
                failures += 1
                waited += self._wait(trouble, failures, waited, str(source))

    def _once(self, call: Callable[[], T], source: Source) -> T:
        """Calls huggingface_hub; its errors become Transient or an end."""
        try:
            return call()
        except GatedRepoError:
            raise RefusedError(
                f"{source.repo} is gated"
                + (", and this token's account has no access" if self._token else ", and there is no token"),
                remedy=f"Accept its terms at {self.endpoint}/{source.repo} and give the token of that account in HF_TOKEN",
            ) from None
        except RevisionNotFoundError:
            raise RefusedError(
                f"{source.repo} has no commit {source.revision}{self._head(source)}",
                remedy="Name a commit of this repository",
            ) from None
        except RepositoryNotFoundError:
            raise RefusedError(
                f"{source.repo} does not exist on {self.endpoint}, or is private",
                remedy="Check the name; for a private repository give a token in HF_TOKEN",
            ) from None
        except RemoteEntryNotFoundError as error:
            raise ContentError(f"{source}: a listed file is gone ({_first(error)})", remedy="Run it again") from None
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status == 407:
                raise RefusedError("the proxy asks for credentials (407)", remedy=PROXY_REMEDY) from None
            if _may_pass(status):
                after = retry_after(error.response.headers.get("Retry-After"))
                raise Transient(f"the hub answers {status}", retry_after=after, refused=status in (429, 503)) from None
            raise RefusedError(
                f"the hub answers {status} for {source.repo}: {_first(error)}",
                remedy="Check HF_TOKEN and the repository",
            ) from None
        except HFValidationError as error:
            raise UsageError(
                f"{source.repo!r} can't be a repository ({_first(error)})", remedy="Write it as the hub shows it"
            ) from None
        except (httpx2.RequestError, OSError) as error:
            if isinstance(error, httpx2.ProxyError) and PROXY_REFUSAL.search(str(error)):
                raise RefusedError(f"the proxy refuses ({_first(error)})", remedy=PROXY_REMEDY) from None
            raise Transient(f"the hub can't be reached ({type(error).__name__}: {error})") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # A page for people instead of JSON, or JSON without what huggingface_hub takes for granted.
            raise Transient(
                f"{self.endpoint} does not answer as a hub does ({type(error).__name__}: {_first(error)})"
            ) from None

    def _head(self, source: Source) -> str:
        try:
            return f" (its main branch is at {self._api.model_info(source.repo, timeout=READ_SECONDS).sha})"
        except (httpx2.HTTPError, OSError):
            return ""


class Downloads:
    """Byte ranges over HTTP, through the proxies of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)."""

    def __init__(self, *, connections: int, read_seconds: float) -> None:
        self._options: dict[str, Any] = {
            "maxsize": connections,
            "timeout": urllib3.Timeout(connect=min(CONNECT_SECONDS, read_seconds), read=read_seconds),
            # Redirects only: what failed is tried again one level up, from the byte where it stopped.
            "retries": urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=5),
        }
        self._managers: dict[str | None, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def stream(
        self, address: str, headers: dict[str, str], *, file: RemoteFile, offset: int, wanted: int
    ) -> Iterator[bytes]:
        """Yields blocks until there are `wanted` bytes. Raises Transient when the answer ends before."""
        asked = {"Range": f"bytes={offset}-{offset + wanted - 1}", "Accept-Encoding": "identity", **headers}
        try:
            response = self._manager(address).request("GET", address, headers=asked, preload_content=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            reason = getattr(error, "reason", error)  # the whole error names the file, which may hold any number
            if isinstance(reason, urllib3.exceptions.ProxyError) and PROXY_REFUSAL.search(str(reason.original_error)):
                raise RefusedError(
                    f"the proxy refuses ({_reason(reason.original_error)})", remedy=PROXY_REMEDY
                ) from None
            raise Transient(f"{_host(address)}: {_reason(error)}") from None
        finished = False
        try:
            room = _room(response, file=file, offset=offset, wanted=wanted)
            done = 0
            while done < room:
                block = response.read(min(BLOCK, room - done), decode_content=False)
                if not block:
                    raise Transient(f"{_host(address)}: the answer ended after {done} of {room} bytes")
                done += len(block)
                yield block
            finished = response.length_remaining in (0, None) and response.status == 206
            if done < wanted:
                raise Transient(f"{_host(address)}: the answer ended after {done} of {wanted} bytes")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(f"{_host(address)}: {_reason(error)}") from None
        finally:
            if not finished:
                response.close()
            response.release_conn()

    def _manager(self, address: str) -> urllib3.PoolManager:
        proxy = proxy_for(address)
        with self._lock:
            if proxy not in self._managers:
                self._managers[proxy] = (
                    _proxied(proxy, self._options) if proxy else urllib3.PoolManager(**self._options)
                )
            return self._managers[proxy]


def _proxied(address: str, options: dict[str, Any]) -> urllib3.ProxyManager:
    """Through a proxy, with the user and password of its address: urllib3 does not take them from there."""
    given = credentials(address)
    headers = {} if given is None else urllib3.make_headers(proxy_basic_auth=given)
    return urllib3.ProxyManager(address, proxy_headers=headers, **options)


def _may_pass(status: int) -> bool:
    """Whether the same request may be answered later."""
    return status >= 500 or status in (408, 425, 429)


def _room(response: urllib3.BaseHTTPResponse, *, file: RemoteFile, offset: int, wanted: int) -> int:
    """How many bytes of the answer belong into the wanted range. Raises when the answer is none to what was asked."""
    status = response.status
    if status == 407:
        raise RefusedError("the proxy asks for credentials (407)", remedy=PROXY_REMEDY)
    if _may_pass(status):
        after = retry_after(response.headers.get("Retry-After"))
        raise Transient(f"answers {status}", retry_after=after, refused=status in (429, 503))
    if status == 416:
        raise ContentError(f"{file.path} has no byte {offset}, though {file.size} are listed", remedy="Run it again")
    if 400 <= status < 500:
        raise Expired(f"answers {status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise Transient(f"answers with content encoding {response.headers['Content-Encoding']}")
    if status == 206:
        span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", ""))
        if span is None or int(span[1]) != offset:
            raise Transient(f"answers with another range than asked ({response.headers.get('Content-Range')})")
        if span[3] != "*" and int(span[3]) != file.size:
            raise ContentError(f"{file.path} has {span[3]} bytes, {file.size} are listed", remedy="Run it again")
        return min(wanted, int(span[2]) - offset + 1)
    if status == 200 and offset == 0:
        length = response.headers.get("Content-Length")
        if length is not None and int(length) < wanted:
            return int(length)
        return wanted
    raise Transient(f"answers {status} to a request for bytes from {offset}")


def _remote(entry: RepoFile) -> RemoteFile:
    if entry.lfs is not None:
        return RemoteFile(path=entry.path, size=entry.lfs.size, sha256=entry.lfs.sha256, git_blob=None)
    return RemoteFile(path=entry.path, size=entry.size, sha256=None, git_blob=entry.blob_id)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    url = urlsplit(address)
    return url.scheme, url.hostname, url.port


def _host(address: str) -> str:
    # Never the whole address: its query is a signature.
    return urlsplit(address).netloc


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].partition("?")[0][:200]


def _first(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).partition("?")[0]
