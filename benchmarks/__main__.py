"""`python -m benchmarks [NAME…]`: runs every benchmark, or the named ones; one JSON line for each figure."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys

import benchmarks


def main() -> int:
    """A benchmark is a module of this package with `measure()`, which yields one dictionary for each figure."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names)}")
    wanted = parser.parse_args().names
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"no such benchmark: {', '.join(unknown)}. There are: {', '.join(names)}")
    for name in wanted or names:
        measure = getattr(importlib.import_module(f"benchmarks.{name}"), "measure", None)
        for row in measure() if measure else ():
            print(json.dumps({"benchmark": name, **row}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
