"""Which environment a stack's settings describe, and its program. A cloud's SDK is imported for its own environments only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planning.findings import ConfigurationError, Finding
from planning.settings import planned_only

if TYPE_CHECKING:
    from planning.settings import AnySettings


def build(settings: AnySettings) -> Mapping[str, Any]:
    """Registers the environment's resources; returns the stack's outputs. Raises ConfigurationError before anything is made."""
    match settings.target:
        case "dev":
            from stacks import dev

            return dev.build(settings)
        case "eks-b300":
            from stacks import eks_b300

            return eks_b300.build(settings)
        case target:
            raise ConfigurationError([planned_only(target)])


def missing(settings: AnySettings) -> list[Finding]:
    """What this machine lacks for a real run of an environment."""
    if settings.target == "dev":
        from stacks import dev

        return dev.missing(settings)
    return []
