"""Builds components under Pulumi's mocks and keeps every registration with its inputs and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, rpc

Answer = Callable[[str, Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Registered:
    """One resource as the engine would be asked to make it."""

    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    depends_on: tuple[str, ...]
    protect: bool
    retain_on_delete: bool
    delete_before_replace: bool
    deleted_with: str
    ignore_changes: tuple[str, ...]
    custom: bool


@dataclass
class Recording:
    """What was registered, in order, and what invokes were made."""

    resources: list[Registered] = field(default_factory=list)

    def of(self, kind: str) -> list[Registered]:
        """Resources whose type ends with `kind`, for example `LaunchTemplate` or `eks/nodeGroup:NodeGroup`."""
        return [resource for resource in self.resources if resource.type.endswith(kind)]

    def one(self, kind: str, name: str | None = None) -> Registered:
        """The only resource of a kind (and name)."""
        found = [resource for resource in self.of(kind) if name is None or resource.name == name]
        assert len(found) == 1, f"{len(found)} × {kind} {name or ''}: {[resource.name for resource in found]}"
        return found[0]


class _Cloud(mocks.Mocks):
    """Answers every creation with its inputs, an id, and the outputs that a test adds by type."""

    def __init__(self, outputs: Answer, calls: Answer) -> None:
        self._outputs = outputs
        self._calls = calls

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        known = {"arn": f"arn:aws:mock:::{args.name}", "name": args.name, **args.inputs}
        return f"{args.typ.rpartition(':')[2]}/{args.name}", {**known, **self._outputs(args.typ, known)}

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        return self._calls(args.token, args.args)


def record(
    build: Callable[[], None],
    *,
    outputs: Answer = lambda _type, _inputs: {},
    calls: Answer = lambda _token, _args: {},
) -> Recording:
    """Runs `build` as a Pulumi program under mocks, to its end, and returns what it registered."""
    recording = Recording()

    class Monitor(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:
            recording.resources.append(
                Registered(
                    type=request.type,
                    name=request.name,
                    inputs=dict(rpc.deserialize_properties(request.object)),
                    parent=request.parent,
                    depends_on=tuple(request.dependencies),
                    protect=request.protect,
                    retain_on_delete=request.retainOnDelete,
                    delete_before_replace=request.deleteBeforeReplace,
                    deleted_with=request.deletedWith,
                    ignore_changes=tuple(request.ignoreChanges),
                    custom=request.custom,
                )
            )
            return super().RegisterResource(request)

    cloud = _Cloud(outputs, calls)
    mocks.set_mocks(cloud, project="llm-serving", stack="test", preview=False, monitor=Monitor(cloud))
    pulumi.runtime.test(build)()
    return recording
