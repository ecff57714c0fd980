"""The tools that a machine without a cloud runs the program with: built from Go modules, pinned and cached."""

from sandbox.toolchain.build import ToolchainError, build, cache_directory, missing, module_directory, tool
from sandbox.toolchain.choose import Engine, built_engine, choose_engine

__all__ = [
    "Engine",
    "ToolchainError",
    "build",
    "built_engine",
    "cache_directory",
    "choose_engine",
    "missing",
    "module_directory",
    "tool",
]
