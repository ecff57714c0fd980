"""EC2 instances as Kubernetes sees them: labels, taints, what pods can have, GPUs."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from catalog.hardware import P6_B300
from catalog.units import MIB
from sandbox.clouds.nodes import Machine

GPU_DRIVER = "gpu.nvidia.com"
NVIDIA_DRIVER_VERSION, CUDA_DRIVER_VERSION = "580.159.3", "13.0.0"
"""Of the EKS image v20260714 (amazon-eks-ami changelog); versions of attributes are semantic: no leading zeros."""

PODS_BY_GROUP = {"p6-b300.48xlarge": 198}
"""Pods that a node takes where the catalogue of instance types does not tell (karpenter-provider-aws, instance types)."""

EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
"""Effects of taints: as EKS writes them, as Kubernetes does."""

PODS = 110
EPHEMERAL = "80Gi"


def machine(*, instance: dict[str, Any], group: dict[str, Any], instance_type: str, region: str) -> Machine:
    """The node of one instance of a node group."""
    capacity, allocatable = resources(instance_type)
    gpus = instance_type == P6_B300.name
    labels = {
        "eks.amazonaws.com/nodegroup": group["nodegroupName"],
        "eks.amazonaws.com/capacityType": group["capacityType"],
        "eks.amazonaws.com/nodegroup-image": "ami-simulated",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": instance["zone"],
        "topology.k8s.aws/zone-id": instance["zoneId"],
        # nodeadm sets it on every node with an NVIDIA device (amazon-eks-ami, nodeadm/internal/kubelet/config.go).
        **({"nvidia.com/gpu.present": "true"} if gpus else {}),
        **group["labels"],
    }
    return Machine(
        name=instance["name"],
        cloud="aws",
        provider_id=f"aws:///{instance['zone']}/{instance['id']}",
        address=instance["address"],
        labels=labels,
        taints=[
            {
                "key": taint["key"],
                **({"value": taint["value"]} if taint.get("value") else {}),
                "effect": EFFECTS[taint["effect"]],
            }
            for taint in group["taints"]
        ],
        capacity=capacity,
        allocatable=allocatable,
        kubelet_version=f"v{group['version']}.0-eks-simulated",
        driver=GPU_DRIVER if gpus else None,
        devices=_gpus(instance["id"]) if gpus else (),
    )


@cache
def resources(instance_type: str) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable of a node. Raises KeyError for a type that neither the catalogue nor moto knows."""
    if instance_type == P6_B300.name:
        assert P6_B300.allocatable_bytes is not None
        common = {"pods": str(PODS_BY_GROUP[instance_type]), "vpc.amazonaws.com/efa": str(len(P6_B300.efa_cards))}
        disk = {"ephemeral-storage": str(P6_B300.nvme_bytes)}
        return (
            {"cpu": str(P6_B300.vcpus), "memory": str(P6_B300.ram_bytes), **disk, **common},
            {"cpu": f"{P6_B300.allocatable_millicpu}m", "memory": str(P6_B300.allocatable_bytes), **disk, **common},
        )
    known = INSTANCE_TYPES[instance_type]
    cpus, memory = int(known["VCpuInfo"]["DefaultVCpus"]), int(known["MemoryInfo"]["SizeInMiB"])
    common = {"pods": str(PODS), "ephemeral-storage": EPHEMERAL}
    reserved = 255 + 11 * PODS + 100
    return (
        {"cpu": str(cpus), "memory": f"{memory}Mi", **common},
        {"cpu": f"{cpus * 1000 - reserved_millicpus(cpus)}m", "memory": f"{memory - reserved}Mi", **common},
    )


def reserved_millicpus(cpus: int) -> int:
    """CPU that nodeadm keeps for the system: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest
    (amazon-eks-ami, nodeadm/internal/kubelet/config.go)."""
    shares = [60, 10, 5, 5]
    return round(sum(shares[:cpus]) + max(cpus - 4, 0) * 2.5)


def _gpus(instance: str) -> list[dict[str, Any]]:
    """Devices as the NVIDIA DRA driver publishes them (dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go)."""
    accelerator = P6_B300.accelerator
    return [
        {
            "name": f"gpu-{i}",
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": _uuid(f"{instance}-{i}")},
                "productName": {"string": accelerator.name},
                "brand": {"string": "Nvidia"},
                "architecture": {"string": accelerator.family},
                "cudaComputeCapability": {"version": accelerator.compute_capability},
                "driverVersion": {"version": NVIDIA_DRIVER_VERSION},
                "cudaDriverVersion": {"version": CUDA_DRIVER_VERSION},
                "resource.kubernetes.io/pciBusID": {"string": f"0000:{0x10 + 0x10 * i:02x}:00.0"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{0x10 + 0x10 * i:02x}"},
            },
            "capacity": {"memory": {"value": f"{accelerator.memory_bytes // MIB}Mi"}},
        }
        for i in range(P6_B300.ranks)
    ]


def _uuid(seed: str) -> str:
    digits = hashlib.sha256(seed.encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
