"""python -m sandbox.images: makes every image archive that is missing."""

from __future__ import annotations

import argparse
import sys

from sandbox.images import archives
from sandbox.toolchain import ToolchainError


def main() -> int:
    argparse.ArgumentParser(prog="python -m sandbox.images", description=__doc__).parse_args()
    try:
        archives()
    except ToolchainError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
