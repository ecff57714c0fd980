"""What the provider needs to know of a cloud: one table a resource type, one function an invoke."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.clouds.sdk import Problem

Values = dict[str, Any]


class CloudError(Exception):
    """The cloud refuses a call. code: as the cloud names it; the message is the cloud's own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class NotFoundError(CloudError):
    """The cloud does not know the thing that the call names."""


class NotSimulatedError(Exception):
    """The tables lack what the program asks for; the message names it."""


class NotReadyError(Exception):
    """The resource exists but is not what was asked for. id: how to find it again."""

    def __init__(self, id: str, reason: str) -> None:
        super().__init__(reason)
        self.id = id


@dataclass(frozen=True)
class Found:
    """A resource as the cloud has it now: its inputs, and all of its properties."""

    inputs: Values
    properties: Values


@dataclass(frozen=True)
class Autoname:
    """The property that gets a generated name, and what the cloud allows of it."""

    property: str
    max_length: int = 255
    lower: bool = False
    prefix_property: str | None = None


class Table(ABC):
    """How one resource type is made, read, changed and ended."""

    token: str
    autoname: Autoname | None = None
    updatable: frozenset[str] = frozenset()
    """Inputs, or paths within one, that a call of the cloud can change; a change of any other replaces the resource."""
    computed: frozenset[str] = frozenset()
    """Optional inputs, or paths within one, that the cloud fills: unknown in a preview that creates."""
    moves: frozenset[str] = frozenset()
    """Outputs that every update changes: unknown in a preview that updates."""

    def problems(self, inputs: Values) -> Iterator[Problem]:
        """What the cloud's model refuses of inputs that may still hold unknowns."""
        return iter(())

    @abstractmethod
    def create(self, inputs: Values) -> str:
        """Makes the resource and returns its id. Raises CloudError, or NotReadyError when it exists but failed."""

    @abstractmethod
    def read(self, id: str, inputs: Values) -> Found:
        """The resource as it is. inputs: the last known ones, or none. Raises NotFoundError."""

    @abstractmethod
    def update(self, id: str, old: Values, new: Values) -> None:
        """Changes what differs. Raises CloudError, or NotReadyError."""

    @abstractmethod
    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        """Ends the resource. Raises CloudError; NotFoundError counts as done."""


class Cloud(ABC):
    """One cloud. package: the Python SDK. name, version: of the provider whose place it takes."""

    package: str
    name: str
    version: str

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """By type token."""

    @abstractmethod
    def attach(self) -> None:
        """An engine has come: settings of an earlier one no longer hold."""

    @abstractmethod
    def tick(self) -> None:
        """Time has passed: what is due happens now."""

    @abstractmethod
    def configure(self, settings: Values) -> None:
        """Takes the provider's settings."""

    def extra_changes(self, table: Table, inputs: Values, properties: Values) -> Sequence[str]:
        """Outputs that the provider's settings would change although no input did."""
        return ()

    def preview(self, table: Table, inputs: Values) -> Values:
        """Outputs that are known before the resource exists, beside its inputs."""
        return {}

    @abstractmethod
    def invoke(self, token: str, arguments: Values) -> Values:
        """Answers a data source. Raises CloudError, NotSimulatedError."""
