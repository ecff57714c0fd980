"""The EKS stack on the real engine: AWS simulated behind the provider protocol, Kubernetes a real control plane with KWOK nodes.

Pods are placed by the real scheduler and called running by KWOK; none of them runs. So nothing here says that a model answers:
the stack's `proof` is none, with the reason, and its outputs repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox.clouds.process import RunningCloud, running
from sandbox.cluster import Layout
from sandbox.images import make_bundle
from tests.support.accelerator_nodes import apply
from tests.support.eks import RESERVATION, values
from tests.support.pulumi import Stack

ZONE = "us-west-2c"
OTHER_RESERVATION = "cr-0fedcba9876543210"
WHY_NO_PROOF = "nodes are simulated: pods are placed, not run"


def block(
    reservation: str = RESERVATION, *, zone: str = ZONE, starts_in: timedelta = timedelta(days=-1), count: int = 2
) -> dict[str, Any]:
    """A capacity block as the simulated cloud keeps it; two weeks long."""
    start = datetime.now(UTC) + starts_in
    return {
        "id": reservation,
        "instanceType": "p6-b300.48xlarge",
        "availabilityZone": zone,
        "count": count,
        "start": start.isoformat(),
        "end": (start + timedelta(days=14)).isoformat(),
    }


@dataclass(frozen=True)
class Eks:
    """The stack, its cloud and its control plane."""

    stack: Stack
    cloud: RunningCloud
    layout: Layout
    bundle: Path

    def configure(self, **changes: Any) -> None:
        """The config of one node on the block, with these settings changed."""
        config = values(**changes)
        config["capacity_block"] = {"reservation": RESERVATION, **changes.get("capacity_block", {})}
        config.setdefault("proof", {"kind": "none", "reason": WHY_NO_PROOF})
        config["artifacts"] = {"bundle": str(self.bundle)}
        self.stack.configure(config)


@contextmanager
def eks(layout: Layout, directory: Path, *, name: str = "eks") -> Iterator[Eks]:
    """A stack that is configured and not yet up, and the cloud that it lives in."""
    bundle = directory / "artifacts"
    make_bundle(bundle)
    apply(layout, EBS_VOLUME)
    with running("aws", state=directory / "aws", kubeconfig=layout.kubeconfig) as cloud:
        cloud.sell(block())
        made = Eks(
            stack=Stack(name=name, directory=directory, environment=cloud.environment),
            cloud=cloud,
            layout=layout,
            bundle=bundle,
        )
        made.configure()
        yield made


EBS_VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "stands-for-ebs"},
    "spec": {
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "prometheus",
        "persistentVolumeReclaimPolicy": "Recycle",
        "hostPath": {"path": "/nowhere"},
    },
}
"""The volume that the EBS driver would make on demand: the simulated cloud has no such driver."""
