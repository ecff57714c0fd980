"""Accelerators and machines. Memory is what the driver reports, not what is printed on the box."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import Source
from catalog.units import GB, GIB, MIB

_KARPENTER = Source(where="karpenter-provider-aws@1d927085 instance types", date="2026-08-21")
_FIELD = Source(where="public operator notes on GB300 at GKE", date="2026-07", kind="field note")


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One device as an engine's rank sees it.

    memory_bytes: visible to the driver. context_bytes: taken by the runtime before the engine loads anything.
    major: compute capability; 0 for a TPU. name: product name. family: what `architecture` says in a device's attributes.
    """

    name: str
    family: str
    compute_capability: str
    memory_bytes: int
    context_bytes: int
    source: Source

    @property
    def major(self) -> int:
        """Major compute capability."""
        return int(self.compute_capability.split(".")[0])


CONTEXT_BYTES = round(1.5 * GIB)
"""CUDA context and NCCL before weights: 268.6 GiB visible, 267.1 free on B300 (engines sheet §6)."""

B200 = Accelerator(
    name="NVIDIA B200",
    family="Blackwell",
    compute_capability="10.0.0",
    memory_bytes=183_359 * MIB,
    context_bytes=CONTEXT_BYTES,
    source=_KARPENTER,
)
B300 = Accelerator(
    name="NVIDIA B300 SXM6 AC",
    family="Blackwell",
    compute_capability="10.3.0",
    memory_bytes=275_040 * MIB,
    context_bytes=CONTEXT_BYTES,
    source=_KARPENTER,
)
GB300 = Accelerator(
    name="NVIDIA GB300",
    family="Blackwell",
    compute_capability="10.3.0",
    memory_bytes=279 * GB,
    context_bytes=CONTEXT_BYTES,
    source=_FIELD,
)
TPU7X_CORE = Accelerator(
    name="TPU7x TensorCore",
    family="tpu7x",
    compute_capability="0",
    memory_bytes=96 * GIB,
    context_bytes=0,
    source=Source(where="docs.cloud.google.com/tpu/docs/tpu7x: 192 GiB a chip, two TensorCores", date="2026-09"),
)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine type.

    ranks: devices that engine ranks run on. ram_bytes: physical. allocatable_bytes, allocatable_millicpu: what pods can
    have; None where no source says. nvme_bytes: local disks. vcpus.
    architecture: of the processor, as images name it. efa_cards: network cards that take an EFA device.
    """

    name: str
    accelerator: Accelerator
    ranks: int
    vcpus: int
    ram_bytes: int
    allocatable_bytes: int | None
    allocatable_millicpu: int | None
    nvme_bytes: int
    architecture: str | None
    efa_cards: tuple[int, ...]
    source: Source

    @property
    def usable_bytes(self) -> int:
        """Host memory that may be planned with: allocatable where it is known, else all of it."""
        return self.allocatable_bytes or self.ram_bytes


P6_B300 = Machine(
    name="p6-b300.48xlarge",
    accelerator=B300,
    ranks=8,
    vcpus=192,
    ram_bytes=4_194_304 * MIB,
    allocatable_bytes=3_877_198 * MIB,
    allocatable_millicpu=191_450,
    nvme_bytes=30_400 * GB,
    architecture="amd64",
    efa_cards=tuple(range(1, 17)),
    source=_KARPENTER,
)
A4X_MAX = Machine(
    name="a4x-maxgpu-4g-metal",
    accelerator=GB300,
    ranks=4,
    vcpus=144,
    ram_bytes=960 * GB,
    allocatable_bytes=None,
    allocatable_millicpu=None,
    nvme_bytes=12_000 * GB,
    architecture="arm64",
    efa_cards=(),
    source=_FIELD,
)
TPU7X_HOST = Machine(
    name="tpu7x-standard-4t",
    accelerator=TPU7X_CORE,
    ranks=8,
    vcpus=224,
    ram_bytes=960 * GB,
    allocatable_bytes=None,
    allocatable_millicpu=None,
    nvme_bytes=0,
    architecture=None,
    efa_cards=(),
    source=Source(where="docs.cloud.google.com/tpu/docs/tpu7x: 4 chips, 224 vCPU, 960 GB", date="2026-09"),
)

MACHINES = (P6_B300, A4X_MAX, TPU7X_HOST)


def machine(name: str) -> Machine | None:
    """The row of a machine type, or None."""
    return next((row for row in MACHINES if row.name == name), None)


NVLINK_DOMAIN_NODES = 18
"""a4x-maxgpu-4g-metal nodes in one NVLink domain, which is one reservation sub-block (cluster-toolkit; operator notes)."""
