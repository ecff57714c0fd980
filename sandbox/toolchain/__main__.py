"""python -m sandbox.toolchain build [NAME…] | list | path NAME"""

from __future__ import annotations

import argparse
import sys

from sandbox.toolchain.build import ToolchainError, build, missing, tool
from sandbox.toolchain.catalog import TOOLS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.toolchain", description="Build the sandbox's tools from their Go modules."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="build what is missing")
    builder.add_argument("names", nargs="*", metavar="NAME", help="only these; all when none is given")
    commands.add_parser("list", help="every tool, and whether it is built")
    commands.add_parser("path", help="where a tool's binary lies; builds it when missing").add_argument(
        "name", choices=list(TOOLS)
    )
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            build(arguments.names or None)
        elif arguments.command == "list":
            not_built = set(missing())
            for name in TOOLS:
                print(f"{name:28} {'missing' if name in not_built else 'built'}")
        else:
            print(tool(arguments.name))
    except ToolchainError as error:
        print(f"toolchain: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("toolchain: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
