"""The program: config → settings → environment → outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime.config import get_config_env

from planning.findings import ConfigurationError
from planning.settings import decode, load, planned_only
from planning.settings.dev import Dev
from planning.settings.eks import EksB300


def build() -> Mapping[str, Any]:
    """Builds the environment that the stack's config describes. A cloud's SDK is imported for its own environments only."""
    settings = load(decode(get_config_env()))
    if isinstance(settings, Dev):
        from stacks import dev

        return dev.build(settings)
    if isinstance(settings, EksB300):
        from stacks import eks_b300

        return eks_b300.build(settings)
    raise ConfigurationError([planned_only(settings.target)])


try:
    outputs = build()
except ConfigurationError as error:
    # The message is for whoever sits at the terminal: every finding, one line each, and no traceback.
    raise pulumi.RunError(f"the configuration can't be used\n{error}") from None
for name, value in outputs.items():
    pulumi.export(name, value)
