"""The program: config → settings → environment → outputs."""

from __future__ import annotations

import pulumi
from pulumi.runtime.config import get_config_env

from planning.findings import ConfigurationError
from planning.settings import decode, load
from stacks.building import build, missing

try:
    settings = load(decode(get_config_env()))
    if lacking := missing(settings):
        raise ConfigurationError(lacking)
    outputs = build(settings)
except ConfigurationError as error:
    # The message is for whoever sits at the terminal: every finding, one line each, and no traceback.
    raise pulumi.RunError(f"the configuration can't be used\n{error}") from None
for name, value in outputs.items():
    pulumi.export(name, value)
