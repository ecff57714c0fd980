"""SGLang's own command-line parser, run from its wheel's sources alone: no torch, no GPU.

Run as a program, because it puts stand-ins into sys.modules: `python -m tests.support.sglang_parser DIRECTORY FLAG…`
prints {"values": …, "unknown": […], "options": {…: choices}} or argparse's refusal. Only sglang.srt.arg_groups is really
imported; whatever it imports of the rest of sglang is a name without meaning.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import pkgutil
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REAL = ("sglang.srt.arg_groups", "sglang.srt.model_executor.cuda_graph_config")


class Hollow(types.ModuleType):
    """A module in which every name exists: constants are empty, parsers of values pass them on, the rest are empty classes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "human_readable_int":
            return int
        if name == "json_list_type":
            return json.loads
        return [] if name.isupper() else type(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the parser's own modules in the wheel and hollow ones for the rest of sglang."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] != "sglang" or name.startswith(REAL):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = Hollow(spec.name)
        module.__path__ = [str(self.root / spec.name.replace(".", "/"))]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: the module is hollow."""


def parser(root: Path) -> argparse.ArgumentParser:
    """The parser as SGLang builds it out of its declarations."""
    sys.meta_path.insert(0, Finder(root))
    utilities = importlib.import_module("sglang.srt.arg_groups.arg_utils")
    fields = importlib.import_module("sglang.srt.arg_groups.fields")
    built = argparse.ArgumentParser(prog="sglang", allow_abbrev=False)
    for found in pkgutil.iter_modules(fields.__path__):
        for group in vars(importlib.import_module(f"{fields.__name__}.{found.name}")).values():
            if isinstance(group, type) and "_NS_PATH" in group.__dict__:
                utilities.add_cli_args_from_dataclass(built, group)
    return built


def main(root: str, *flags: str) -> None:
    """Parses the flags and prints what came of it."""
    built = parser(Path(root))
    values, unknown = built.parse_known_args(list(flags))
    options = {
        option: [str(choice) for choice in action.choices] if action.choices else None
        for action in built._actions  # argparse has no public way to list its options
        for option in action.option_strings
    }
    print(json.dumps({"values": vars(values), "unknown": unknown, "options": options}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
