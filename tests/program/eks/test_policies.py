"""Every policy rule on every resource of the EKS program, in each of its variants."""

from __future__ import annotations

from typing import Any

import pytest

from policies.pack import violations
from policies.rule import Resource
from tests.support.eks import SCHEDULED
from tests.support.eks_program import program

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "scheduled": {"block": SCHEDULED},
    "two nodes": {"nodes": {"count": 2}},
    "fsx": {"weights": {"store": "fsx"}},
    "efs": {"weights": {"store": "efs"}},
    "device plugin": {"gpu_allocation": "device-plugin"},
    "public": {"cluster": {"endpoint": {"access": "public", "callers": ["203.0.113.0/24"]}}},
    "amp": {"monitoring": {"kind": "amp"}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_resource_violates_a_policy(variant: str) -> None:
    recording, _ = program(**VARIANTS[variant])
    found = violations([Resource(type=each.type, properties=each.inputs) for each in recording.resources])
    assert found == []


def test_a_load_balancer_that_is_open_to_the_world_is_refused() -> None:
    recording, _ = program(
        gateway={
            "exposure": "internet-facing",
            "callers": ["0.0.0.0/0"],
            "port": 443,
            "certificate_arn": "arn:aws:acm:us-west-2:123456789012:certificate/1",
            "auth": {
                "kind": "jwt",
                "issuer": "https://i.example",
                "audiences": ["a"],
                "jwks_uri": "https://i.example/k",
            },
        }
    )
    found = violations([Resource(type=each.type, properties=each.inputs) for each in recording.resources])
    assert len(found) == 1
    assert "whole internet" in found[0]
