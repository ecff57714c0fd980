"""The plan: everything that can be computed about an environment before anything is created."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planning.block import CapacityBlock, Schedule
from planning.cost import Cost
from planning.findings import ConfigurationError, Finding, Severity
from planning.memory import Memory
from planning.parts import Part
from planning.router import RouterPlan
from planning.startup import Startup
from planning.workload import EngineWorkload, PoolPlan, SmokePlan, WeightsPlan

if TYPE_CHECKING:
    from planning.settings.eks import EksB300
    from planning.settings.gke import GkeA4xMax, GkeTpu7x

    CloudSettings = EksB300 | GkeA4xMax | GkeTpu7x


class Plan(Part):
    """One environment, planned. Immutable; `Plan.model_validate_json(plan.model_dump_json()) == plan`.

    block: the capacity block that it was judged with; None: not known yet (`block_findings` judges it later).
    """

    target: str
    model: str
    made_at: datetime
    memory: Memory
    startup: Startup
    cost: Cost
    engines: tuple[EngineWorkload, ...]
    router: RouterPlan
    weights: WeightsPlan
    pool: PoolPlan
    smoke: SmokePlan
    block: CapacityBlock | None
    schedule: Schedule | None
    findings: tuple[Finding, ...]

    @property
    def engine(self) -> EngineWorkload:
        """The engine of a plan with one role."""
        (only,) = self.engines
        return only

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that stop the program."""
        return tuple(found for found in self.findings if found.severity is Severity.ERROR)

    def refuse_errors(self) -> None:
        """Raises ConfigurationError with every error and warning when there is an error."""
        if self.errors:
            raise ConfigurationError([found for found in self.findings if found.severity is not Severity.NOTE])


def plan(settings: CloudSettings, *, now: datetime | None = None, block: CapacityBlock | None = None) -> Plan:
    """The plan of a production environment (the dev environment has one of its own: planning.dev).

    now: for everything that depends on the date; default: this moment. block: the capacity block as AWS describes it;
    without it, the facts that the settings declare are taken, if there are any.
    """
    moment = now or datetime.now(UTC)
    if settings.target == "eks-b300":
        from planning.eks import plan_eks

        return plan_eks(settings, now=moment, block=block)
    if settings.target == "gke-a4x-max":
        from planning.gke_gpu import plan_a4x

        return plan_a4x(settings, now=moment)
    from planning.gke_tpu import plan_tpu

    return plan_tpu(settings, now=moment)
