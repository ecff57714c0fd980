"""sandbox up | down | status | logs | kubeconfig: the embedded cluster on its own, without a stack on it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from sandbox import cluster, toolchain
from sandbox.images import make_bundle

DEFAULT_STATE = Path(os.environ.get("SANDBOX_STATE") or Path(__file__).parent.parent / ".state" / "cluster")


def up(state: Path, profile: cluster.Profile) -> None:
    started = time.monotonic()
    layout = cluster.start(state, profile=profile)
    make_bundle(state.parent / "artifacts")
    print(f"ready in {time.monotonic() - started:.0f} s. KUBECONFIG={layout.kubeconfig}")


def down(state: Path) -> None:
    print("stopped, and its state removed" if cluster.stop(state) else "nothing is up")


def show_status(state: Path) -> int:
    """One line a program; exit code 3 when the cluster does not run, 4 when a part of it does not serve."""
    programs = cluster.status(state)
    if not programs:
        print("not running")
        return 3
    for name, each in programs.items():
        said = "ready" if each["ready"] else f"not ready (last exit code {each['last_exit']})"
        print(f"{name:26}{said}, started {each['starts']} time(s)")
    return 0 if all(each["ready"] for each in programs.values()) else 4


def show_logs(state: Path, program: str | None) -> None:
    layout = cluster.Layout.load(state)
    logs = sorted(layout.logs.glob("*.log")) if layout else []
    names = [log.stem for log in logs]
    if program is None:
        print("\n".join(names) or "there are no logs: nothing is up")
    elif program in names:
        sys.stdout.write((logs[names.index(program)]).read_text(errors="replace"))
    else:
        raise cluster.SandboxError(
            f"there is no log of {program!r}; there are: {', '.join(names) or 'none (nothing is up)'}."
        )


def show_kubeconfig(state: Path) -> None:
    layout = cluster.Layout.load(state)
    if layout is None or not layout.kubeconfig.exists():
        raise cluster.SandboxError(f"there is no cluster in {state}. Start one: sandbox up")
    print(layout.kubeconfig)


def main() -> int:
    parser = argparse.ArgumentParser(prog="sandbox", description=__doc__)
    parser.add_argument("--state", type=Path, default=DEFAULT_STATE, help="the cluster's directory (or $SANDBOX_STATE)")
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start the cluster; one that runs is left as it is")
    starting.add_argument(
        "--profile",
        choices=[p.value for p in cluster.Profile],
        default="node",
        help="control-plane: without a node that runs pods",
    )
    commands.add_parser("down", help="stop the cluster and remove its state")
    commands.add_parser("status", help="what runs (exit code 3: nothing, 4: a part does not serve)")
    commands.add_parser("logs", help="a program's log; without a name, the names").add_argument("program", nargs="?")
    commands.add_parser("kubeconfig", help="where the administrator's kubeconfig lies")
    arguments = parser.parse_args()
    state = arguments.state.resolve()
    try:
        match arguments.command:
            case "up":
                up(state, cluster.Profile(arguments.profile))
            case "down":
                down(state)
            case "status":
                return show_status(state)
            case "logs":
                show_logs(state, arguments.program)
            case "kubeconfig":
                show_kubeconfig(state)
    except (cluster.SandboxError, toolchain.ToolchainError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"sandbox: {error.filename or state}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sandbox: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
