"""Which Pulumi runs the program: the user's own, or the built one. Chosen once, whole, and said in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain.build import ToolchainError, cache_directory, tool
from sandbox.toolchain.catalog import KUBERNETES_PROVIDER, PULUMI

OLDEST_PULUMI = (3, 229, 0)
"""The Python SDK in requirements.txt talks to this engine and newer ones: its speed-ups and policy packs without an analyzer plugin came by 3.229."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A Pulumi engine and how its plugins are found.

    `environment` is what a pulumi process needs on top of the caller's; `said` is the line for the user.
    """

    pulumi: Path
    environment: dict[str, str]
    said: str


def choose_engine() -> Engine:
    """The user's `pulumi` where one of a fitting version is on PATH, else the built toolchain.

    Raises ToolchainError when a `pulumi` on PATH is too old, and when the toolchain can't be built.
    """
    own = shutil.which("pulumi")
    if own is None:
        return built_engine()
    version = _version(own)
    if version < OLDEST_PULUMI:
        raise ToolchainError(
            f"pulumi {_dotted(version)} on PATH ({own}) is too old: {_dotted(OLDEST_PULUMI)} or newer is needed. "
            "Upgrade it, or take it off PATH to use the built toolchain."
        )
    return Engine(
        pulumi=Path(own),
        environment={},
        said=f"pulumi {_dotted(version)} from PATH ({own}), which gets its plugins its own way",
    )


def built_engine() -> Engine:
    """The toolchain built from Go modules: CLI, Python language host and Kubernetes provider, and nothing from elsewhere.

    The files are laid out as Pulumi installs them (language hosts beside the CLI, providers in its plugin directory).
    """
    host = tool("pulumi-language-python")
    provider = tool("pulumi-resource-kubernetes")
    home = cache_directory() / "pulumi-home"
    pulumi = _laid_out(home / "bin", tool("pulumi"), host, host.with_name("pulumi-language-python-exec"))
    _laid_out(home / "plugins" / f"resource-kubernetes-v{KUBERNETES_PROVIDER}", provider)
    return Engine(
        pulumi=pulumi,
        environment={
            "PATH": os.pathsep.join([str(pulumi.parent), os.environ.get("PATH", "")]),
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
        },
        said=f"pulumi {PULUMI} built from its Go modules, with the Kubernetes provider {KUBERNETES_PROVIDER}",
    )


def _laid_out(directory: Path, *files: Path) -> Path:
    """Hard links (the CLI looks beside its real path, which a symbolic link would not be); returns the first file's."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        place = directory / file.name
        if not (place.exists() and place.samefile(file)):
            fresh = place.with_name(f".{place.name}.{os.getpid()}")
            os.link(file, fresh)
            fresh.replace(place)
    return directory / files[0].name


def _version(pulumi: str) -> tuple[int, ...]:
    done = subprocess.run(
        [pulumi, "version"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
    )
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.returncode or not found:
        raise ToolchainError(
            f"{pulumi} is on PATH, but `pulumi version` gives no version ({(done.stderr or done.stdout).strip() or 'no output'}). "
            "Repair it, or take it off PATH to use the built toolchain."
        )
    return tuple(map(int, found.groups()))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
