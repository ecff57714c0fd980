"""An EKS environment's settings and plan for tests: the recipe's model on one node, a block that is active."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from planning.plan import Plan, plan
from planning.settings import load
from planning.settings.eks import EksB300
from tests.support.recipe import manifest

NOW = datetime(2026, 12, 4, 9, 0, tzinfo=UTC)
BLOCK = {
    "state": "active",
    "instance_type": "p6-b300.48xlarge",
    "availability_zone": "us-west-2c",
    "count": 2,
    "start": "2026-11-20T11:30:00Z",
    "end": "2099-12-17T11:30:00Z",
}
SCHEDULED = {**BLOCK, "state": "scheduled", "start": "2099-12-05T11:30:00Z"}
RESERVATION = "cr-0123456789abcdef0"
SERVICE = manifest("model-service.yaml")["metadata"]
SERVED_NAME = f"{SERVICE['namespace']}/{SERVICE['name']}"
"""What the recipe's ModelService is called in requests."""


def values(**changes: Any) -> dict[str, Any]:
    """The stack's config as YAML would give it."""
    cache = manifest("model-cache.yaml")["spec"]["huggingFace"]
    return {
        "target": "eks-b300",
        "region": "us-west-2",
        "model": {"repo": cache["repo"], "revision": cache["revision"], "served_name": SERVED_NAME},
        "weights": {"store": "nvme"},
        "capacity_block": {"reservation": RESERVATION, "facts": BLOCK},
        "network": {"zones": ["us-west-2a", "us-west-2b", "us-west-2c"]},
        "cluster": {"endpoint": {"access": "private", "callers": ["10.8.0.0/16"]}},
        **changes,
    }


def settings(**changes: Any) -> EksB300:
    """The settings of these values."""
    loaded = load(values(**changes))
    assert isinstance(loaded, EksB300)
    return loaded


def planned(**changes: Any) -> Plan:
    """The plan of these values."""
    return plan(settings(**changes), now=NOW)
