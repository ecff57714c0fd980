"""python -m docs.generate [--check]: writes the generated parts of the docs anew; with --check only says whether they are up to date.

A generated part stands between two comments, <!-- NAME:begin … --> and <!-- NAME:end -->.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from catalog.artifacts import CHARTS, CRD_BUNDLES, IMAGES
from planning.dev import plan_dev
from planning.flows import Anywhere, ApiServer, Pods
from planning.settings import load_stack_file
from planning.settings.dev import Dev
from stacks.graph import draw
from stacks.render import record

ROOT = Path(__file__).parent.parent


def picture() -> str:
    """The dev environment as Mermaid, which the forges draw."""
    settings = load_stack_file(ROOT / "Pulumi.dev.yaml")
    return f"```mermaid\n{draw(record(settings, stack='dev'))}```\n"


def versions() -> str:
    """Every image, chart and CRD bundle with its source."""
    rows = [
        *((row.reference, "image", row.source) for row in IMAGES.values()),
        *((f"{row.reference} {row.version}", "chart", row.source) for row in CHARTS.values()),
        *((f"{row.name} {row.version}", "CRDs", row.source) for row in CRD_BUNDLES.values()),
    ]
    lines = ["| artifact | kind | source | as of |", "|---|---|---|---|"]
    lines += [f"| `{what}` | {kind} | {source.where} | {source.date} |" for what, kind, source in rows]
    return "\n".join(lines) + "\n"


def flows() -> str:
    """The dev environment's flow table."""
    settings = load_stack_file(ROOT / "Pulumi.dev.yaml")
    lines = ["| from | to | ports | why |", "|---|---|---|---|"]
    for flow in plan_dev(cast(Dev, settings)).flows:
        ports = ", ".join(map(str, flow.ports))
        lines.append(f"| {_who(flow.source)} | {_who(flow.target)} | {ports} | {flow.why} |")
    return "\n".join(lines) + "\n"


def _who(end: Pods | Anywhere | ApiServer) -> str:
    if isinstance(end, Pods):
        return f"{end.namespace}: " + ", ".join(f"`{name}={value}`" for name, value in end.labels.items())
    return "anyone" if isinstance(end, Anywhere) else "the Kubernetes API"


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "picture": ("README.md", picture),
    "versions": ("docs/versions.md", versions),
    "flows": ("docs/dev.md", flows),
}
"""Name → the file that has the part, and what makes it."""


def stale() -> dict[Path, str]:
    """The files that are not up to date, with the text that they should have."""
    found: dict[Path, str] = {}
    for name, (file, make) in PARTS.items():
        path = ROOT / file
        text = found.get(path, path.read_text(encoding="utf-8"))
        pattern = re.compile(rf"(<!-- {name}:begin[^>]*-->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        place = pattern.search(text)
        if place is None:
            raise SystemExit(f"docs: {file} has no place for the generated part {name!r}")
        fresh = text[: place.start()] + place[1] + make() + place[2] + text[place.end() :]
        if fresh != path.read_text(encoding="utf-8"):
            found[path] = fresh
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    check = parser.parse_args().check
    found = stale()
    if check:
        for path in found:
            print(f"docs: {path.relative_to(ROOT)} is not up to date. Run: make docs", file=sys.stderr)
        return 1 if found else 0
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")
        print(f"docs: wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
