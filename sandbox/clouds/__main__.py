"""python -m sandbox.clouds aws --state DIR [--kubeconfig F] [--clock TIME] [--faults F]

Serves a simulated cloud to the Pulumi engine and prints `aws:PORT`, the value for PULUMI_DEBUG_PROVIDERS.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from sandbox.clouds.clock import Clock, moment
from sandbox.clouds.faults import Faults
from sandbox.clouds.server import serve
from sandbox.clouds.tables import Cloud


def main() -> int:
    """Exit code 0 after SIGTERM, 1 when the state can't be used."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.clouds", description=__doc__)
    parser.add_argument("cloud", choices=["aws"])
    parser.add_argument("--state", type=Path, required=True, help="directory that is the cloud's memory")
    parser.add_argument("--kubeconfig", type=Path, help="control plane that clusters get their endpoint from")
    parser.add_argument("--clock", type=moment, help="a time to stand at (ISO 8601) instead of the real one")
    parser.add_argument("--faults", type=Path, help="JSON file of faults; it is read anew at every call")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    options.state.mkdir(parents=True, exist_ok=True)
    clock = Clock(options.state)
    if options.clock:
        clock.set(options.clock)
    faults = Faults(options.faults, state=options.state)
    serve(_cloud(options, clock, faults), faults)
    return 0


def _cloud(options: argparse.Namespace, clock: Clock, faults: Faults) -> Cloud:
    from sandbox.clouds.aws import command_line
    from sandbox.clouds.aws.cloud import Aws

    if options.kubeconfig:
        command_line.install(options.state / "bin", kubeconfig=options.kubeconfig)
    return Aws(state=options.state, clock=clock, faults=faults, kubeconfig=options.kubeconfig)


if __name__ == "__main__":
    sys.exit(main())
