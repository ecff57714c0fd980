"""`python -m planning --stack NAME`: what an environment will be, whether it fits, what it costs; without credentials."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planning.dev import DevPlan
    from planning.plan import Plan

EXIT_REFUSED = 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m planning",
        description="Plans an environment out of its Pulumi.STACK.yaml: does it fit, how long until the first token, what "
        "does it cost, and what is wrong with it. Creates nothing and needs no account.",
        epilog="Exit code 0: nothing stops it. 1: a finding does, or the configuration can't be read. Lines end with the "
        "rule's name; `acknowledge: {RULE: your reason}` in the stack's file turns an error into a note.",
    )
    parser.add_argument("--stack", metavar="NAME", help="the stack, as in Pulumi.NAME.yaml")
    parser.add_argument("--directory", type=Path, default=Path(), help="where the stack's file is (default: here)")
    parser.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="how to tell it (default: text)"
    )
    parser.add_argument(
        "--now",
        metavar="TIME",
        help="plan as if it were this moment, for example 2026-12-10T08:00:00Z (default: the clock)",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of every setting and end")
    parser.add_argument("--rules", action="store_true", help="print every rule with its reason and source and end")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _arguments()
    options = parser.parse_args(arguments)
    if options.schema:
        from planning.settings import schema

        print(json.dumps(schema(), indent=2))
        return 0
    if options.rules:
        print(_rules(), end="")
        return 0
    if not options.stack:
        parser.error("--stack NAME is missing; stacks are the files Pulumi.NAME.yaml")
    now = _moment(options.now, parser)
    from planning.findings import ConfigurationError

    try:
        planned = _planned(options.directory / f"Pulumi.{options.stack}.yaml", now)
    except ConfigurationError as error:
        if options.format == "json":
            print(json.dumps({"findings": [found.model_dump(mode="json") for found in error.findings]}, indent=2))
        else:
            print(error, file=sys.stderr)
        return EXIT_REFUSED
    if options.format == "json":
        print(planned.model_dump_json(indent=2))
    else:
        from planning.report import markdown, text

        print(markdown(planned) if options.format == "markdown" else text(planned, colour=sys.stdout.isatty()), end="")
    return EXIT_REFUSED if getattr(planned, "errors", ()) else 0


def _rules() -> str:
    """Every rule as a row of Markdown."""
    from planning.report.markdown import table
    from planning.rules import RULES

    return table(
        ("rule", "severity", "why", "remedy", "source"),
        [(rule.id, str(rule.severity), rule.why, rule.remedy, rule.source) for rule in RULES],
    )


def _planned(path: Path, now: datetime) -> Plan | DevPlan:
    from planning.dev import plan_dev
    from planning.plan import plan
    from planning.settings import load_stack_file
    from planning.settings.dev import Dev

    settings = load_stack_file(path)
    return plan_dev(settings) if isinstance(settings, Dev) else plan(settings, now=now)


def _moment(given: str | None, parser: argparse.ArgumentParser) -> datetime:
    if given is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        parser.error(f"--now {given} is no time; write it like 2026-12-10T08:00:00Z")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main())
