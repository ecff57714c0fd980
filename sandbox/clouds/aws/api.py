"""The simulated AWS API: every request is judged by botocore's model, then executed by moto or by a state machine of ours.

State is the list of calls that changed something. A process that starts with a state directory makes the same calls
again, each with the random numbers and at the time of the first run, so ids, names and timestamps come out the same;
when they don't, it refuses to start. A call is on disk before its answer leaves the process.
"""

from __future__ import annotations

import base64
import copy
import datetime as dt
import itertools
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANAGED_POLICIES = "MOTO_IAM_LOAD_MANAGED_POLICIES"
os.environ[MANAGED_POLICIES] = "true"

import boto3
import moto
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.backend_index import backend_url_patterns
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_api._internal import mock_random

from sandbox.clouds.aws import model, repeatable
from sandbox.clouds.clock import Clock, moment
from sandbox.clouds.faults import Faults
from sandbox.clouds.tables import CloudError, NotFoundError

ACCOUNT = DEFAULT_ACCOUNT_ID
ATTEMPTS = 8
"""How often a throttled call, or a read that does not see a fresh resource, is tried. The real provider makes 25
attempts over minutes; nothing here gets better by waiting."""

FOUNDED = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
"""When an account got its default VPC and whatever else it has from the start."""

FIRST = ("ec2", "elb", "elbv2", "iam")
"""Parts of moto that others draw on."""

MOTO_REGION = "us-east-1"
"""Moto asks this region which addresses a service answers."""

READS = ("Describe", "Get", "List", "Head", "Simulate", "Search")
REFUSALS = frozenset({"throttle", "error", "not-found"})
STARVES = frozenset({"insufficient-capacity"})

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """One request on its way."""

    service: str
    operation: str
    params: dict[str, Any]
    region: str
    now: dt.datetime
    api: Api
    starved: bool = False
    """Whether an injected fault takes the capacity away that this call needs."""

    def forward(self, **changes: Any) -> dict[str, Any]:
        """Lets moto answer, with these members changed."""
        return self.api.moto(self.service, self.operation, self.region, {**self.params, **changes})


Handler = Callable[[Call], dict[str, Any]]


class InvalidRequestError(CloudError):
    """botocore's model refuses the request."""


class StateError(Exception):
    """The state directory can't be brought back to life; the message says why."""


class Api:
    """All services of one account.

    handlers: by service and operation, what moto lacks or does too little of. settle: called after each change and each
    step of time, to let consequences follow (nodes of a node group, a scheduled action).
    """

    def __init__(self, *, state: Path, clock: Clock, faults: Faults, handlers: dict[tuple[str, str], Handler]) -> None:
        self._journal = state / "journal.jsonl"
        self._clock = clock
        self._faults = faults
        self._handlers = handlers
        self._lock = threading.RLock()
        self._clients: dict[tuple[str, str], Any] = {}
        self._count = 0
        self.now = clock.now()
        self.live = False
        """False while the journal is repeated."""
        self.ticking = False
        """True while only time has passed."""
        self.settle: Callable[[dt.datetime], None] = lambda now: None
        os.environ.update(
            AWS_ACCESS_KEY_ID="simulated", AWS_SECRET_ACCESS_KEY="simulated", AWS_EC2_METADATA_DISABLED="true"
        )
        self._mock = moto.mock_aws()
        self._mock.start()
        repeatable.install()

    def close(self) -> None:
        """Gives botocore back; for tests that hold an account in their own process."""
        self._mock.stop()

    def call(self, service: str, operation: str, *, region: str, **params: Any) -> dict[str, Any]:
        """Makes one call. Raises InvalidRequestError, NotFoundError or CloudError."""
        params = {name: value for name, value in params.items() if value is not None}
        found = model.problems(service, operation, params)
        if found:
            told = "; ".join(f"{each.path} {each.reason}" for each in found)
            raise InvalidRequestError("InvalidParameter", f"{service} {operation}: {told}")
        for attempt in range(1, ATTEMPTS + 1):
            fault = self._faults.due(operation, kinds=REFUSALS)
            if fault is None:
                with self._lock:
                    self.tick()
                    return self._execute(service, operation, region, params)
            if fault.kind == "error" or attempt == ATTEMPTS:
                code = {"throttle": "ThrottlingException", "not-found": "ResourceNotFoundException"}.get(
                    fault.kind, "InjectedFault"
                )
                error = NotFoundError if fault.kind == "not-found" else CloudError
                raise error(code, f"{operation}: {fault.message}" + (f" ({attempt} attempts)" if attempt > 1 else ""))
        raise AssertionError("unreachable")

    def moto(self, service: str, operation: str, region: str, params: dict[str, Any]) -> dict[str, Any]:
        """Lets moto answer."""
        key = (service, region)
        if key not in self._clients:
            config = Config(retries={"max_attempts": 0}, parameter_validation=False)
            self._clients[key] = boto3.client(service, region_name=region, config=config)
            self._found(service, region, self._clients[key].meta.endpoint_url)
        try:
            answer: dict[str, Any] = getattr(self._clients[key], xform_name(operation))(**params)
        except ClientError as error:
            told = error.response["Error"]
            kind = NotFoundError if _means_not_found(told["Code"]) else CloudError
            raise kind(told["Code"], f"{operation}: {told.get('Message', '')}") from error
        answer.pop("ResponseMetadata", None)
        return answer

    def _found(self, service: str, region: str, address: str) -> None:
        """Brings moto's part of a service into being, the same way whenever the first call comes."""
        before, now = mock_random.getstate(), self.now
        repeatable.stand_at(FOUNDED)
        asked = [name for name, pattern in backend_url_patterns if pattern.match(f"{address}/")]
        for name, place in itertools.product((*FIRST, *asked, service), (region, MOTO_REGION)):
            mock_random.seed(f"{name} {place}")
            regions = get_backend(name)[ACCOUNT]  # type: ignore[call-overload]
            for each in [place] if place in regions.regions else regions.regions:  # some have partitions, not regions
                # 1,400 managed policies take a while to load: only where the account is.
                os.environ[MANAGED_POLICIES] = str(
                    each in (place, "aws-us-gov" if region.startswith("us-gov-") else "aws")
                )
                regions[each]
        os.environ[MANAGED_POLICIES] = "true"
        mock_random.setstate(before)
        repeatable.stand_at(now)

    def tick(self) -> None:
        """Lets the consequences of passing time follow."""
        with self._lock:
            self._stand_at(self._clock.now())
            self.ticking = True
            try:
                self.settle(self.now)
            finally:
                self.ticking = False

    def reseed(self) -> None:
        """The next random values follow from the number of journal entries alone."""
        mock_random.seed(f"{self._count}")

    def _stand_at(self, now: dt.datetime) -> None:
        self.now = now
        repeatable.stand_at(now)

    def note(self, event: str, **what: Any) -> None:
        """Writes down something that happened by itself, so that it happens again after a restart."""
        if self.live:
            self._append({"event": event, **what})

    def restore(self, happened: Callable[[dict[str, Any]], None]) -> None:
        """Repeats what the journal says. happened: repeats an event that was noted."""
        for entry in self._entries():
            self._stand_at(moment(entry["at"]))
            self.reseed()
            if "event" in entry:
                happened(entry)
            else:
                answer = self._run(
                    entry["service"],
                    entry["operation"],
                    entry["region"],
                    _thawed(entry["params"]),
                    starved=entry["starved"],
                )
                if _frozen(answer) != entry["answer"]:
                    raise StateError(
                        f"{self._journal}: call {self._count}, {entry['operation']}, no longer gives the answer that was "
                        "recorded. The simulation has changed since: destroy the stack with the version that made the state, "
                        "or remove the state directory and the stack's state together."
                    )
            self._count += 1

    def _execute(self, service: str, operation: str, region: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation.startswith(READS):
            return self.answer(service, operation, region, params)
        starved = self._faults.due(operation, kinds=STARVES) is not None
        self.reseed()
        at = self.now
        answer = self._run(service, operation, region, params, starved=starved)
        entry = {"service": service, "operation": operation, "region": region, "starved": starved}
        self._append({**entry, "params": _frozen(params), "answer": _frozen(answer)}, at=at)
        return answer

    def _run(
        self, service: str, operation: str, region: str, params: dict[str, Any], *, starved: bool
    ) -> dict[str, Any]:
        answer = self.answer(service, operation, region, params, starved=starved)
        frozen = copy.deepcopy(answer)
        self.settle(self.now)
        return frozen

    def answer(
        self, service: str, operation: str, region: str, params: dict[str, Any], *, starved: bool = False
    ) -> dict[str, Any]:
        """The answer of our state machine, or moto's."""
        call = Call(service, operation, params, region, self.now, self, starved)
        handler = self._handlers.get((service, operation))
        return handler(call) if handler else call.forward()

    def _append(self, entry: dict[str, Any], *, at: dt.datetime | None = None) -> None:
        with self._journal.open("a") as journal:
            journal.write(json.dumps({"at": (at or self.now).isoformat(), **entry}) + "\n")
        self._count += 1

    def _entries(self) -> Iterator[dict[str, Any]]:
        if not self._journal.exists():
            return
        text = self._journal.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # killed in the middle of a write: that call never answered
            self._journal.write_text(whole)
        for line in whole.splitlines():
            yield json.loads(line)


def _means_not_found(code: str) -> bool:
    return "NotFound" in code or "NoSuch" in code or code == "404"


def _frozen(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _frozen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(item) for item in value]
    if isinstance(value, bytes):
        return {"__bytes__": base64.b64encode(value).decode()}
    if isinstance(value, dt.datetime):
        return {"__time__": value.isoformat()}
    return value if isinstance(value, str | int | float | bool | None) else str(type(value))


def _thawed(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"__bytes__"}:
            return base64.b64decode(value["__bytes__"])
        if value.keys() == {"__time__"}:
            return dt.datetime.fromisoformat(value["__time__"])
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, list) else value
