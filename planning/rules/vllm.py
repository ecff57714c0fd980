"""vLLM: what its argument parser, its start-up checks and the model's shape refuse."""

from __future__ import annotations

from planning.findings import Severity
from planning.rules.rule import Rules

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES = Rules("vllm 0.33.0, vllm/engine/arg_utils.py and entrypoints")
