"""How fast weights move: from a store to one engine, as a range in bytes a second."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import ASSUMED, GUIDE, Source
from catalog.units import GB, MIB


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Bytes a second, slow and fast end. per_node: each node has its own; otherwise all readers share it."""

    slow: float
    fast: float
    per_node: bool
    source: Source


NVME_READ = Rate(
    slow=2.9 * GB,
    fast=30 * GB,
    per_node=True,
    source=Source(
        where="fast: EKS user guide, fast model loading (~30 GB/s); slow: K3 of this size ready in ~9 min from local NVMe, "
        "AMD-AGI/Infera@5890f7f",
        date="2026-08-21",
    ),
)
"""Read by the engine from the instance store, RAID0."""

S3_TO_NVME = Rate(slow=1 * GB, fast=10 * GB, per_node=True, source=ASSUMED)
"""Copy from the bucket to the instance store. Not measured on this machine; its network would allow 37 GB/s."""

FSX_NETWORK_MBPS_PER_TIB = {125: 320, 250: 640, 500: 1300, 1000: 2600}
"""Network baseline by tier: what cached data can give (FSx user guide, ssd-storage)."""

EFS_READ = Rate(
    slow=894 * 2**30 / (43 * 60),
    fast=1.5 * 2**30,
    per_node=True,
    source=Source(
        where="slow: 894 GiB in 43 min with the default loader (modelplane#204); fast: per-client ceiling 1.5 GiB/s "
        "(EFS limits)",
        date="2026-08",
    ),
)

EFS_FILL = Rate(
    slow=960 * GB / (31 * 60),
    fast=960 * GB / (31 * 60),
    per_node=False,
    source=Source(where="modelplane#383: 960 GB in about 31 min", date="2026-08", kind="measured"),
)
"""Copy from the bucket into EFS."""

FSX_IMPORT = Rate(slow=1 * GB, fast=10 * GB, per_node=False, source=ASSUMED)
"""Contents that FSx pulls from the bucket when it is warmed; bounded by the tier as well."""

POPULATOR = Rate(
    slow=3886 * GB / (5 * 3600),
    fast=3886 * GB / (5 * 3600),
    per_node=False,
    source=Source(where="public notes: 3,886 GB in about 5 h", date="2026-06", kind="field note"),
)
"""GKE Volume Populator, bucket to Hyperdisk ML."""

HYPERDISK_ML_MIBPS = 6400
"""Throughput that the guide provisions, in MiB/s, shared by all readers."""
HYPERDISK_ML_SOURCE = GUIDE


def hyperdisk_ml(mibps: int) -> Rate:
    """A Hyperdisk ML volume of that provisioned throughput."""
    return Rate(slow=mibps * MIB, fast=mibps * MIB, per_node=False, source=HYPERDISK_ML_SOURCE)


def fsx_read(*, tier: int, storage_gib: int) -> Rate:
    """FSx for Lustre: the disks at worst, the network when everything is cached."""
    tib = storage_gib / 1024
    return Rate(
        slow=tier * tib * 10**6,
        fast=FSX_NETWORK_MBPS_PER_TIB[tier] * tib * 10**6,
        per_node=False,
        source=Source(where="FSx for Lustre user guide, ssd-storage", date="2026-08"),
    )
