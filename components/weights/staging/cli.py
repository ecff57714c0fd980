"""The command line. Each flag also has a variable; README.md lists them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import VERSION
from .errors import StagingError, UsageError
from .limits import Patience, Stop
from .manifest import Source, parse_source, pinned
from .memory import Budget
from .parts import MIB
from .progress import Progress, report, say
from .proxies import address_problem, check_proxies

TERMINATION_LOG = "/dev/termination-log"


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit code. Errors are one line on stderr, and the termination message."""
    stop = Stop()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    progress = Progress("waiting")
    try:
        options = _parser().parse_args(arguments)
        progress = Progress(options.doing, every=options.log_seconds)
        record = options.run(options, stop, progress)
        code = 0
    except StagingError as error:
        say(f"error: {error}")
        record = {"result": "failed", "error": error.what, "remedy": error.remedy}
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - a fault of this program
        # Its traceback goes to the log, and who reads the Job's status learns of it too.
        traceback.print_exc()
        what = f"unexpected {type(error).__name__}: {error}"
        record = {"result": "failed", "error": what[:1000], "remedy": "Report it with the log; finished files stay"}
        code = 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    report(_termination_log(), {**record, **progress.metrics(), "exit_code": code})
    return code


def _stage(options: argparse.Namespace, stop: Stop, progress: Progress) -> dict[str, Any]:
    check_proxies()
    from huggingface_hub import get_token

    from .hub import HubClient
    from .stage import Staging, stage
    from .stores import Store

    patience = Patience(give_up=options.give_up_seconds)
    store = Store(options.store, patience=patience)
    hub = HubClient(
        endpoint=options.hub,
        token=get_token(),
        connections=options.connections,
        patience=patience,
        stop=stop,
        progress=progress,
        read_seconds=options.read_seconds,
    )
    with ThreadPoolExecutor(options.connections, thread_name_prefix="part") as pool, progress:
        run = Staging(
            store=store,
            hub=hub,
            pool=pool,
            parallel_files=options.parallel_files,
            budget=Budget(options.memory * MIB, stop=stop),
            patience=patience,
            stop=stop,
            progress=progress,
        )
        done = {}
        for source in _sources(options):
            manifest, worked = stage(run, source)
            done[str(source)] = "staged" if worked else "was complete"
            say(f"{source}: {done[str(source)]}: {len(manifest.files)} files, {manifest.size} bytes in {store}")
    return {"result": "complete", "sources": done}


def _verify(options: argparse.Namespace, stop: Stop, progress: Progress) -> dict[str, Any]:
    from .verify import verify_directory, verify_store

    sources = [pinned(source) for source in _sources(options)]
    how = "every byte" if options.full else "every size"
    if options.directory:
        with progress:
            for source in sources:
                found = verify_directory(
                    options.directory,
                    source,
                    full=options.full,
                    stop=stop,
                    progress=progress,
                    parallel_files=options.parallel_files,
                )
                say(
                    f"{source}: {how} is as it should be: {len(found.files)} files, {found.size} bytes "
                    f"in {options.directory}"
                )
        return {"result": "verified"}
    from .stores import Store

    store = Store(_needed(options.store, "--store"), patience=Patience(give_up=options.give_up_seconds))
    with ThreadPoolExecutor(options.connections, thread_name_prefix="part") as pool, progress:
        for source in sources:
            found = verify_store(
                store,
                source,
                full=options.full,
                pool=pool,
                parallel_files=options.parallel_files,
                budget=Budget(options.memory * MIB, stop=stop),
                stop=stop,
                progress=progress,
            )
            say(f"{source}: {how} is as it should be: {len(found.files)} files, {found.size} bytes in {store}")
    return {"result": "verified"}


def _hydrate(options: argparse.Namespace, stop: Stop, progress: Progress) -> dict[str, Any]:
    from .hydrate import Hydration, hydrate
    from .stores import Store

    patience = Patience(give_up=options.give_up_seconds)
    store = Store(options.store, patience=patience)
    with ThreadPoolExecutor(options.connections, thread_name_prefix="part") as pool, progress:
        run = Hydration(
            store=store,
            directory=options.directory,
            pool=pool,
            parallel_files=options.parallel_files,
            budget=Budget(options.memory * MIB, stop=stop),
            patience=patience,
            stop=stop,
            progress=progress,
        )
        done = {}
        for source in [pinned(source) for source in _sources(options)]:
            manifest, worked = hydrate(run, source)
            done[str(source)] = "hydrated" if worked else "was complete"
            say(
                f"{source}: {done[str(source)]}: {len(manifest.files)} files, {manifest.size} bytes in {options.directory}"
            )
    if options.stay:
        report(_termination_log(), {"result": "complete", "sources": done, **progress.metrics()})
        stop.wait()
    return {"result": "complete", "sources": done}


def _status(options: argparse.Namespace, stop: Stop, progress: Progress) -> dict[str, Any]:
    from .status import copies
    from .stores import Store

    found = copies(Store(options.store, patience=Patience(give_up=options.give_up_seconds)))
    if options.json:
        print(json.dumps([asdict(copy) for copy in found], indent=1))
    else:
        for copy in found:
            print(f"{copy.repo}@{copy.revision}  {copy.files} files  {copy.bytes / 1e9:.1f} GB  {copy.state}")
        if not found:
            print(f"{options.store} holds no copy")
    return {"result": "listed"}


def _remove(options: argparse.Namespace, stop: Stop, progress: Progress) -> dict[str, Any]:
    from .status import remove_from_directory, remove_from_store

    for source in [pinned(source) for source in _sources(options)]:
        where = options.directory or _needed(options.store, "--store")
        if not options.yes:
            raise UsageError(
                f"{source} in {where} would be removed", remedy="Add --yes when nothing serves it any more"
            )
        if options.directory:
            say(
                f"{source}: {'removed from' if remove_from_directory(options.directory, source) else 'was not in'} {where}"
            )
            continue
        from .stores import Store

        store = Store(where, patience=Patience(give_up=options.give_up_seconds))
        say(f"{source}: {remove_from_store(store, source)} objects removed from {store}")
    return {"result": "removed"}


def _sources(options: argparse.Namespace) -> list[Source]:
    """The sources of the flags; without any, those of the variable."""
    given: list[Any] = options.source or []
    if not given and (text := os.environ.get("STAGING_SOURCES")):
        given = [text]
        if text.lstrip().startswith("["):
            try:
                given = json.loads(text)
            except ValueError as error:
                raise UsageError(
                    f"STAGING_SOURCES is no JSON list ({error})", remedy='Write ["owner/name@<40 hex digits>", …]'
                ) from None
    if not given:
        raise UsageError("there is no source", remedy="Give --source OWNER/NAME@COMMIT, or set STAGING_SOURCES")
    allow, ignore = tuple(options.allow), tuple(options.ignore)
    return [parse_source(source, allow=allow, ignore=ignore) for source in given]


def _termination_log() -> str:
    return os.environ.get("STAGING_TERMINATION_LOG", TERMINATION_LOG)


def _needed(value: str | None, flag: str) -> str:
    if not value:
        raise UsageError(f"{flag} is not given", remedy=f"Give {flag} or --directory")
    return value


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(message, remedy=f"See `{self.prog} --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="staging", description="Model weights: hub → object store → node, every byte verified.")
    parser.add_argument("--version", action="version", version=f"staging {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    stage = _command(commands, "stage", "copy from the hub into the store", "staging", _stage)
    _store(stage, required=True)
    _setting(stage, "--hub", "HF_ENDPOINT", None, _address, "address of the hub; unset: https://huggingface.co")
    _setting(
        stage,
        "--read-seconds",
        "STAGING_READ_SECONDS",
        60.0,
        _positive_float,
        "silence after which a connection is given up",
    )
    _patterns(stage)

    verify = _command(commands, "verify", "check a copy against its manifest", "verifying", _verify)
    _place(verify)
    _patterns(verify)
    how = verify.add_mutually_exclusive_group()
    how.add_argument("--full", action="store_true", help="read and hash every byte")
    how.add_argument("--quick", action="store_false", dest="full", help="compare sizes and the store's tags (default)")

    hydrate = _command(commands, "hydrate", "copy from the store into a directory of this node", "hydrating", _hydrate)
    _store(hydrate, required=True)
    _setting(hydrate, "--directory", "STAGING_DIRECTORY", None, Path, "where the copies lie", required=True)
    _patterns(hydrate)
    hydrate.add_argument("--stay", action="store_true", help="keep running when done, until SIGTERM")

    status = _command(commands, "status", "list the copies in the store", "listing", _status, sources=False)
    _store(status, required=True)
    status.add_argument("--json", action="store_true", help="as JSON")

    remove = _command(commands, "remove", "remove a copy that nothing serves any more", "removing", _remove)
    _place(remove)
    remove.add_argument("--yes", action="store_true", help="do it")
    return parser


def _command(
    commands: Any, name: str, help_: str, doing: str, run: Any, *, sources: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_, description=help_)
    parser.set_defaults(run=run, doing=doing)
    if sources:
        parser.add_argument(
            "--source",
            action="append",
            metavar="SOURCE",
            help="OWNER/NAME@COMMIT, or a JSON object with repo, revision, allow, ignore; repeatable "
            "($STAGING_SOURCES: one of them or a JSON list)",
        )
        parser.set_defaults(allow=[], ignore=[])
    _setting(parser, "--parallel-files", "STAGING_PARALLEL_FILES", 8, _positive, "files that are copied side by side")
    _setting(parser, "--connections", "STAGING_CONNECTIONS", 16, _positive, "requests at once, at most")
    _setting(parser, "--memory", "STAGING_MEMORY_MIB", 768, _positive, "MiB of buffers, at most")
    _setting(
        parser,
        "--give-up-seconds",
        "STAGING_GIVE_UP_SECONDS",
        900.0,
        _positive_float,
        "seconds without progress until it fails",
    )
    _setting(
        parser, "--log-seconds", "STAGING_LOG_SECONDS", 10.0, _positive_float, "seconds between two lines of progress"
    )
    return parser


def _store(parser: argparse.ArgumentParser, *, required: bool) -> None:
    _setting(
        parser,
        "--store",
        "STAGING_STORE",
        None,
        str,
        "s3://BUCKET/BASE, gs://BUCKET/BASE or file:///DIRECTORY",
        required=required,
    )


def _place(parser: argparse.ArgumentParser) -> None:
    _store(parser, required=False)
    _setting(parser, "--directory", "STAGING_DIRECTORY", None, Path, "a node's directory instead of the store")


def _patterns(parser: argparse.ArgumentParser) -> None:
    for name, what in (("allow", "take only"), ("ignore", "leave out")):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="PATTERN",
            help=f"{what} files that match, in every source",
        )


def _setting(
    parser: argparse.ArgumentParser,
    flag: str,
    variable: str,
    default: Any,
    kind: Any,
    help_: str,
    *,
    required: bool = False,
) -> None:
    """A flag whose default is a variable of the environment."""
    given: Any = os.environ.get(variable) or default
    shown = f"${variable}" + (f", else {default}" if default is not None else "")
    parser.add_argument(flag, type=kind, default=given, required=required and given is None, help=f"{help_} ({shown})")


def _address(text: str) -> str:
    if wrong := address_problem(text):
        raise argparse.ArgumentTypeError(f"{text!r} {wrong}")
    return text


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _positive_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
