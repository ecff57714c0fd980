"""python -m stacks.graph --stack NAME: a picture of the environment as Mermaid, drawn from what the program registers.

A box is a part of the stack (a component, or a resource that stands alone) with the number of resources in it; an arrow leads from what
must be there first. Arrows that follow from others are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from planning.findings import ConfigurationError
from planning.settings import load_stack_file
from stacks.render import Registration, record

HIDDEN = ("pulumi:providers:",)
"""Providers stand before everything and would only cross the picture."""


def draw(registrations: list[Registration]) -> str:
    """The picture's text."""
    part_of = _parts(registrations)
    sizes: dict[str, int] = defaultdict(int)
    needs: dict[str, set[str]] = defaultdict(set)
    for each in registrations:
        part = part_of.get(each.urn)
        if part is None:
            continue
        sizes[part] += each.is_resource
        needs[part] |= {part_of[urn] for urn in each.depends_on if urn in part_of} - {part}
    # In order of need and then of name: the order of registration differs from run to run.
    boxes = [each for each in registrations if part_of.get(each.urn) == each.urn]
    tops = {each.urn: each for each in sorted(boxes, key=lambda each: (len(_reach(each.urn, needs)), each.name))}
    numbers = {urn: f"p{number}" for number, urn in enumerate(tops)}
    lines = ["flowchart LR"]
    for urn, top in tops.items():
        count = "1 resource" if sizes[urn] == 1 else f"{sizes[urn]} resources"
        lines.append(f'  {numbers[urn]}["{top.name}<br/><small>{top.kind}, {count}</small>"]')
    for urn in tops:
        lines.extend(
            f"  {numbers[needed]} --> {numbers[urn]}" for needed in sorted(_direct(urn, needs), key=numbers.__getitem__)
        )
    return "\n".join(lines) + "\n"


def _parts(registrations: list[Registration]) -> dict[str, str]:
    """URN → URN of the part of the stack that it is in. What is hidden is in none."""
    parts: dict[str, str] = {}
    stacks = {each.urn for each in registrations if each.type == "pulumi:pulumi:Stack"}
    for each in registrations:  # parents come before their children
        if each.urn in stacks or each.type.startswith(HIDDEN):
            continue
        top = each.parent == "" or each.parent in stacks
        parts[each.urn] = each.urn if top else parts[each.parent]
    return parts


def _direct(part: str, needs: Mapping[str, set[str]]) -> set[str]:
    """What a part needs and none of the other things that it needs needs already."""
    direct = set(needs.get(part, ()))
    return direct - {further for each in direct for further in _reach(each, needs)}


def _reach(part: str, needs: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = [part]
    while todo:
        for each in needs.get(todo.pop(), ()):
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stacks.graph", description=__doc__)
    parser.add_argument("--stack", required=True, help="name in Pulumi.NAME.yaml")
    stack = parser.parse_args().stack
    file = Path(f"Pulumi.{stack}.yaml")
    if not file.exists():
        print(f"graph: there is no {file}.", file=sys.stderr)
        return 2
    try:
        sys.stdout.write(draw(record(load_stack_file(file), stack=stack)))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
