"""python -m sandbox.dev up | down: the whole dev environment in one command."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from sandbox import cluster, toolchain
from sandbox.dev.own import ClusterError, check_own_cluster
from sandbox.dev.pulumi import PulumiError, Stack
from sandbox.images import make_bundle
from sandbox.packages import main as install_packages

PROJECT = Path(__file__).parent.parent.parent
STATE = PROJECT / ".state"


class BusyError(Exception):
    """Another `make up` or `make down` is at work in this checkout."""


def up() -> None:
    """Builds what is missing, starts the cluster, runs `pulumi up`, and says how to use what stands."""
    started = time.monotonic()
    # Before the engine, which may have to be built.
    if own_cluster():
        say(check_own_cluster())
    else:
        prepare_machine()
    engine = toolchain.choose_engine()
    say(engine.said)
    stack = dev_stack(engine)
    if not own_cluster() and stack.start_over_on_another(start_embedded_cluster()):
        say("the embedded cluster is a new one: what the stack had on the former is gone and made anew")
    stack.select()
    stack.recover()
    stack.run("up", "--yes", "--skip-preview", "--stack", stack.name)
    report(stack, seconds=time.monotonic() - started)


def down() -> None:
    """Takes the stack down, and the embedded cluster with everything in it. With nothing up it says so.

    On the user's cluster that is a `pulumi destroy`. The embedded cluster goes whole, so that only the record of its objects is left to drop.
    """
    stack = dev_stack(toolchain.choose_engine()) if (STATE / "pulumi").exists() else None
    recorded = stack is not None and stack.exists()
    if stack is not None and recorded:
        stack.unlock()
        if own_cluster():
            stack.run("destroy", "--yes", "--skip-preview", "--stack", stack.name)
        stack.run("stack", "rm", "--yes", "--force", "--preserve-config", stack.name)
    stopped = not own_cluster() and cluster.stop(STATE / "cluster")
    if not own_cluster():
        shutil.rmtree(STATE / "artifacts", ignore_errors=True)
    if stack is None or not stack.any():
        shutil.rmtree(STATE / "pulumi", ignore_errors=True)
    say("everything is down" if recorded or stopped else "nothing is up")


def prepare_machine() -> None:
    """The packages that the embedded cluster needs, and whether this machine can run it: a build of minutes would be for nothing."""
    if install_packages():
        raise ClusterError("the Debian packages above could not be installed.")
    cluster.check_machine(cluster.Profile.NODE)


def start_embedded_cluster() -> str:
    """The tools, the cluster; each says what it does when there is something to do. Returns the cluster's identity."""
    toolchain.build()
    started = time.monotonic()
    make_bundle(STATE / "artifacts")
    layout = cluster.start(STATE / "cluster")
    say(f"the embedded cluster is ready ({time.monotonic() - started:.0f} s)")
    return layout.identity


def own_cluster() -> bool:
    """Whether the user brings a cluster."""
    return bool(os.environ.get("KUBECONFIG"))


def dev_stack(engine: toolchain.Engine) -> Stack:
    """The stack of this checkout: `dev` on the embedded cluster, `dev-own` on the user's."""
    return Stack(engine=engine, name="dev-own" if own_cluster() else "dev", project=PROJECT, state=STATE / "pulumi")


def report(stack: Stack, *, seconds: float) -> None:
    """What stands, how to try it, how to take it down."""
    outputs = stack.outputs()
    model = outputs["model"]
    print(f"\n{model} is served ({seconds:.0f} s). Smoke check: {outputs['smoke']}")
    for shape, endpoint in outputs["endpoints"].items():
        print(f"\n  {shape}: {endpoint}")
        address = endpoint
        if own_cluster():  # the address is one inside the cluster
            print(f"    {outputs['forwards'][shape]} &")
            address = f"http://127.0.0.1:{urlsplit(endpoint).port}"
        print(
            f"""    curl -sS {address}/v1/completions -H 'Content-Type: application/json' \\
      -d '{{"model": "{model}", "prompt": "Say hello.", "max_tokens": 16}}'"""
        )
    print("\nTake it down: make down")


@contextmanager
def only_one() -> Iterator[None]:
    """Holds the checkout's lock; the kernel drops it with the process, however that ends. With nothing up it leaves no trace."""
    STATE.mkdir(exist_ok=True)
    path = STATE / "dev.lock"
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "another `make up` or `make down` is at work in this checkout. Wait for it, or stop it with Ctrl-C there."
            ) from None
        yield
        if list(STATE.iterdir()) == [path]:
            path.unlink()
            STATE.rmdir()


def say(line: str) -> None:
    """One line of progress."""
    print(f"dev: {line}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.dev", description=__doc__)
    parser.add_argument("command", choices=["up", "down"])
    command = {"up": up, "down": down}[parser.parse_args().command]
    try:
        with only_one():
            command()
    except (BusyError, ClusterError, PulumiError, toolchain.ToolchainError, cluster.SandboxError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same command goes on where it stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
