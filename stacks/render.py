"""python -m stacks.render --stack NAME --out DIR: every resource of a stack as it would be registered, without credentials.

Kubernetes objects become YAML, all others JSON with their Pulumi type and inputs; one file each, under names that do not depend on
the order of registration. What only a cloud can know stands as COMPUTED.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pulumi
import yaml
from pulumi.runtime import mocks, rpc

from planning.findings import ConfigurationError, Finding, Severity
from planning.settings import load_stack_file
from stacks.building import build

if TYPE_CHECKING:
    from planning.settings import AnySettings
    from planning.settings.eks import EksB300

COMPUTED = "<known after up>"
SECRET = "<secret>"
OBJECT = re.compile(r"kubernetes:(?:(?P<group>[^/]+)/)?(?P<version>[^:/]+):(?P<kind>\w+)$")
UNSAFE = re.compile(r"[^\w.-]")
RENDERED_BY_PROVIDER = ("kubernetes:helm.sh/", "kubernetes:yaml/", "kubernetes:kustomize/")
ACCOUNT = "000000000000"
"""Stands for the account, which only credentials can tell."""


class _Readable(yaml.SafeDumper):
    """Programs and configurations keep their lines."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Readable.add_representer(str, _text)


@dataclass(frozen=True)
class Rendered:
    """One resource: its Pulumi type token, its Pulumi name, and its inputs."""

    type: str
    name: str
    inputs: dict[str, Any]

    @property
    def file(self) -> str:
        """Its path below the output directory."""
        if self.is_object:
            metadata = self.inputs.get("metadata") or {}
            place = metadata.get("namespace") or "cluster"
            kind = self.type.rpartition(":")[2]
            return f"kubernetes/{place}/{kind}-{metadata.get('name') or self.name}.yaml"
        provider, _, rest = self.type.partition(":")
        return f"{provider}/{UNSAFE.sub('-', rest)}-{UNSAFE.sub('-', self.name)}.json"

    @property
    def is_object(self) -> bool:
        """Whether it is one Kubernetes object."""
        return bool(OBJECT.match(self.type)) and not self.type.startswith(RENDERED_BY_PROVIDER)

    @property
    def text(self) -> str:
        """Its file's content."""
        if self.is_object:
            return yaml.dump(self.inputs, Dumper=_Readable, sort_keys=True, allow_unicode=True, width=4096)
        return (
            json.dumps({"type": self.type, "name": self.name, "inputs": self.inputs}, indent=2, sort_keys=True) + "\n"
        )


@dataclass(frozen=True)
class Registration:
    """What the program asked the engine for: a resource, a component, or a part that a provider expands."""

    urn: str
    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    depends_on: tuple[str, ...]
    is_resource: bool
    """Not a component of the program's own."""

    @property
    def kind(self) -> str:
        """The last part of its type token."""
        return self.type.rpartition(":")[2]


def render(settings: AnySettings, *, stack: str) -> list[Rendered]:
    """The resources of an environment, sorted by file. Raises ConfigurationError."""
    found = [
        Rendered(type=each.type, name=each.name, inputs=each.inputs)
        for each in record(settings, stack=stack)
        if each.is_resource and not each.type.startswith("pulumi:")
    ]
    return sorted(found, key=lambda each: each.file)


def record(settings: AnySettings, *, stack: str) -> list[Registration]:
    """Everything that the program registers, in order. Raises ConfigurationError."""
    found: list[Registration] = []
    failed: list[ConfigurationError] = []

    class Cloud(mocks.Mocks):
        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
            return args.name, _made(args.typ, dict(args.inputs))

        def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
            return _answer(args.token, settings), []

    class Monitor(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:
            answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]
            found.append(
                Registration(
                    urn=answer.urn,
                    type=request.type,
                    name=request.name,
                    inputs=_plain(rpc.deserialize_properties(request.object, keep_unknowns=True)),
                    parent=request.parent,
                    depends_on=tuple(request.dependencies),
                    is_resource=request.custom or request.remote,
                )
            )
            return answer

    def program() -> None:
        try:
            build(settings)
        except ConfigurationError as error:
            failed.append(error)

    cloud = Cloud()
    # In a preview an output that the mocks do not give is unknown, which is what it is here.
    mocks.set_mocks(cloud, project="llm-serving", stack=stack, preview=True, monitor=Monitor(cloud))
    pulumi.runtime.test(program)()
    if failed:
        raise failed[0]
    return found


def _made(kind: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """A resource as it comes back. A part that is given in part only would hide that the rest is not known yet."""
    if kind == "kubernetes:core/v1:Service":
        return {**inputs, "spec": {**inputs.get("spec", {}), "clusterIP": rpc.UNKNOWN}}
    return inputs


def _answer(token: str, settings: AnySettings) -> dict[str, Any]:
    """What the settings know of a cloud's answer."""
    if token.endswith(":getCallerIdentity"):
        return {"accountId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:root", "userId": ACCOUNT, "id": ACCOUNT}
    if token.endswith(":getCapacityBlockReservation"):
        block = cast("EksB300", settings).capacity_block
        facts = block.facts
        if facts is None:
            raise ConfigurationError([_unknown_block(block.reservation)])
        return {
            "id": block.reservation,
            "state": facts.state,
            "instanceType": facts.instance_type,
            "availabilityZone": facts.availability_zone,
            "instanceCount": facts.count,
            "startDate": facts.start.isoformat(),
            "endDate": facts.end.isoformat(),
        }
    return {}


def _unknown_block(reservation: str) -> Finding:
    return Finding(
        rule="render-needs-block-facts",
        severity=Severity.ERROR,
        what="what the capacity block is can't be known without credentials",
        value=reservation,
        why="zone and dates decide what is made",
        remedy="Write what `aws ec2 describe-capacity-reservations` shows into capacity_block.facts",
    )


def _plain(value: Any) -> Any:
    """Values as YAML and JSON have them."""
    if isinstance(value, Mapping):
        if rpc._special_sig_key in value:
            return SECRET
        return {str(key): _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return COMPUTED if value == rpc.UNKNOWN else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return COMPUTED


def write(resources: list[Rendered], directory: Path) -> None:
    """One file a resource. What a former run wrote there is removed first."""
    if directory.exists():
        shutil.rmtree(directory)
    for each in resources:
        place = directory / each.file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(each.text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stacks.render", description=__doc__)
    parser.add_argument("--stack", required=True, help="name in Pulumi.NAME.yaml")
    parser.add_argument("--out", required=True, type=Path, help="directory; a former rendering there is replaced")
    arguments = parser.parse_args()
    file = Path(f"Pulumi.{arguments.stack}.yaml")
    if not file.exists():
        known = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in Path().glob("Pulumi.*.yaml"))
        print(f"render: there is no {file}. Stacks here: {', '.join(known)}.", file=sys.stderr)
        return 2
    if arguments.out.exists() and any(arguments.out.iterdir()) and not (arguments.out / MARK).exists():
        print(f"render: {arguments.out} is not empty and no rendering. Name another directory.", file=sys.stderr)
        return 2
    try:
        resources = render(load_stack_file(file), stack=arguments.stack)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    write(resources, arguments.out)
    (arguments.out / MARK).write_text("".join(f"{each.file}\n" for each in resources), encoding="utf-8")
    print(f"{len(resources)} resources in {arguments.out}{os.sep}")
    return 0


MARK = "INDEX"
"""A file that lists all others; a directory with it may be replaced."""


if __name__ == "__main__":
    sys.exit(main())
