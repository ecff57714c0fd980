"""What the tables of AWS resources have in common: a request, its answer, parts that have calls of their own, tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sandbox.clouds import sdk
from sandbox.clouds.aws import mapping, model
from sandbox.clouds.changes import changes
from sandbox.clouds.sdk import Problem
from sandbox.clouds.tables import CloudError, Found, NotFoundError, NotReadyError, Table, Values

PACKAGE = "pulumi_aws"

Caller = Callable[..., dict[str, Any]]
"""Makes a call of the table's service in the resource's region: caller("CreateVpc", CidrBlock=…)."""


class Account(Protocol):
    """What a table needs of the cloud."""

    id: str
    region: str
    default_tags: Mapping[str, str]

    def call(self, service: str, operation: str, *, region: str, **params: Any) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Part:
    """Properties that a call of their own sets, at any time. at_create: the create call does not take them."""

    properties: tuple[str, ...]
    method: str
    at_create: bool = True


@dataclass(frozen=True)
class Tagging:
    """How a service takes tags.

    member: of the create request; kind: `list` of pairs, `map`, or `specifications` of EC2 for a type of resource.
    """

    member: str
    kind: str
    resource_type: str = ""
    pair: tuple[str, str] = ("Key", "Value")

    def members(self, tags: Mapping[str, str]) -> dict[str, Any]:
        """What the create request says of tags."""
        if not tags:
            return {}
        if self.kind == "map":
            return {self.member: dict(tags)}
        pairs = [{self.pair[0]: key, self.pair[1]: value} for key, value in sorted(tags.items())]
        if self.kind == "list":
            return {self.member: pairs}
        return {self.member: [{"ResourceType": self.resource_type, "Tags": pairs}]}


class AwsTable(Table):
    """One resource type of AWS.

    The create request follows from the inputs by name; `names` has what differs, `fixed` what the provider adds by itself.
    An input that neither the request nor a part takes is a failure: nothing is ignored.
    """

    service: ClassVar[str]
    operation: ClassVar[str]
    """Of the API: what makes the resource."""
    names: ClassVar[Mapping[str, str]] = {}
    answer_names: ClassVar[Mapping[str, str]] = {}
    parts: ClassVar[tuple[Part, ...]] = ()
    fixed: ClassVar[Mapping[str, Any]] = {}
    provider_only: ClassVar[frozenset[str]] = frozenset()
    """Inputs that steer the provider and reach no API."""
    tagging: ClassVar[Tagging | None] = None
    tags_apart: ClassVar[bool] = False
    """The create call takes no tags."""
    only: ClassVar[tuple[str, ...]] = ()
    """Members of the answer's shape are taken by name; these outputs alone, when there are any."""

    def __init__(self, account: Account) -> None:
        self.account = account
        changeable = {name for part in self.parts for name in part.properties}
        self.updatable = frozenset(changeable | self.provider_only | ({"tags"} if self.tagging else set()))
        self.schema = sdk.resource(PACKAGE, self.token)

    # The protocol's side.

    def problems(self, inputs: Values) -> Iterator[Problem]:
        try:
            request = self.request(inputs)
        except mapping.UnmappedError as error:
            yield Problem(self.token, f"is not wholly simulated: {error}")
            return
        yield from model.problems(self.service, self.operation, request)

    def create(self, inputs: Values) -> str:
        call = self.caller(inputs)
        answer = call(self.operation, **self.request(inputs))
        id = self.identify(answer, inputs)
        try:
            for part in self.parts:
                if part.at_create and any(_top(name) in inputs for name in part.properties):
                    getattr(self, part.method)(call, id, {}, inputs)
            if self.tags_apart and self.all_tags(inputs):
                self.retag(call, id, {}, self.all_tags(inputs))
            self.await_ready(call, id, inputs)
        except NotFoundError as error:
            raise NotReadyError(id, f"waiting for {id} after it was made: {error}") from error
        except CloudError as error:
            raise NotReadyError(id, str(error)) from error
        return id

    def read(self, id: str, inputs: Values) -> Found:
        call = self.caller(inputs)
        answer = self.describe(call, id)
        hints = {name: self.schema.outputs[name] for name in self.only} if self.only else self.schema.outputs
        live = mapping.properties(answer, hints, names={"id": "", **self.answer_names})
        live.update({name: value for name, value in self.more(call, id, answer).items() if value is not None})
        live.setdefault("region", inputs.get("region", self.account.region))
        if "region" not in self.schema.outputs:
            live.pop("region")
        self._split_tags(live, inputs)
        return self._found(live, inputs)

    def update(self, id: str, old: Values, new: Values) -> None:
        call = self.caller(new)
        changed = [change.path for change in changes(old, new, updatable=frozenset())]
        for part in self.parts:
            if any(_below(path, name) for path in changed for name in part.properties):
                getattr(self, part.method)(call, id, old, new)
        if self.tagging:
            self.retag(call, id, self.described_tags(call, id), self.all_tags(new))
        self.await_ready(call, id, new)

    # What a table fills in.

    def request(self, inputs: Values) -> dict[str, Any]:
        """The create request."""
        apart = {name for part in self.parts if part.at_create for name in part.properties}
        skip = {*apart, *self.provider_only, "tags", "region"}
        shape = model.operation(self.service, self.operation).input_shape
        request = mapping.request(inputs, shape, names=self.names, skip=skip)
        tags = self.tagging.members(self.all_tags(inputs)) if self.tagging and not self.tags_apart else {}
        return {**self.fixed, **request, **tags}

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        """The resource's id."""
        raise NotImplementedError

    def await_ready(self, call: Caller, id: str, inputs: Values) -> None:
        """Raises NotReadyError when the resource ended in a state that it should not be in."""
        self.describe(call, id)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        """The resource as the API tells it. Raises NotFoundError."""
        raise NotImplementedError

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        """Outputs that the answer does not have by name."""
        return {}

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Changes tags."""
        raise NotImplementedError

    def described_tags(self, call: Caller, id: str) -> Mapping[str, str]:
        """The tags that the resource has now."""
        answer = self.describe(call, id)
        told = answer.get("Tags") or answer.get("tags") or answer.get("TagSet") or []
        tags = told if isinstance(told, dict) else mapping.tags(told)
        return {key: value for key, value in tags.items() if not key.startswith("aws:")}

    # Helpers.

    def caller(self, inputs: Values) -> Caller:
        """Calls of this service in the region of these inputs."""
        region = inputs.get("region", self.account.region)

        def call(operation: str, *, service: str = self.service, **params: Any) -> dict[str, Any]:
            return self.account.call(service, operation, region=region, **params)

        return call

    def all_tags(self, inputs: Values) -> dict[str, str]:
        """The resource's own tags over the provider's default ones."""
        return {**self.account.default_tags, **(inputs.get("tags") or {})}

    def _split_tags(self, live: Values, inputs: Values) -> None:
        if self.tagging is None:
            return
        every = {key: value for key, value in (live.get("tags") or {}).items() if not key.startswith("aws:")}
        default, wanted = self.account.default_tags, inputs.get("tags") or {}
        own = {key: value for key, value in every.items() if key in wanted or default.get(key) != value}
        live["tagsAll"] = every
        live["tags"] = own
        if not own and "tags" not in inputs:
            live.pop("tags")

    def _found(self, live: Values, inputs: Values) -> Found:
        if not inputs:
            taken = {name: value for name, value in live.items() if name in self.schema.inputs.properties}
            return Found(inputs={name: value for name, value in taken.items() if name != "region"}, properties=live)
        settled = {
            name: mapping.settled(value, live[name]) if name in live else value for name, value in inputs.items()
        }
        filled = {
            name: mapping.completed(value, live[name]) if name in live and name not in ("tags",) else value
            for name, value in settled.items()
        }
        return Found(inputs=settled, properties={**live, **filled})


def only_one(found: Sequence[dict[str, Any]], id: str) -> dict[str, Any]:
    """The one thing that a list call was asked for."""
    if not found:
        raise NotFoundError("NotFound", f"{id} does not exist")
    return found[0]


def _top(path: str) -> str:
    return path.partition(".")[0]


def _below(path: str, name: str) -> bool:
    return path == name or path.startswith((f"{name}.", f"{name}[")) or name.startswith((f"{path}.", f"{path}["))
