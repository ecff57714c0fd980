"""Simulated accelerator nodes for a real scheduler: labels, taint, what they can give, and their GPUs as devices."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from catalog.hardware import P6_B300, Accelerator
from catalog.units import MIB
from sandbox import cluster
from sandbox.cluster import Layout


def apply(layout: Layout, *objects: dict[str, Any]) -> None:
    """kubectl apply; fails with what the API server says."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    command = cluster.kubectl_command(layout, "apply", "--server-side", "--filename=-")
    done = subprocess.run(command, input=listed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def node(name: str) -> dict[str, Any]:
    """A node as the accelerator pool's node group makes it, kept alive by KWOK."""
    room = {
        "cpu": f"{P6_B300.allocatable_millicpu}m",
        "memory": str(P6_B300.allocatable_bytes),
        "ephemeral-storage": str(P6_B300.nvme_bytes),
        "pods": "198",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "llm-serving/pool": "accelerators",
                "nvidia.com/gpu.present": "true",
            },
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]},
        "status": {"allocatable": room, "capacity": room},
    }


def devices(name: str, *, gpu: Accelerator, count: int) -> dict[str, Any]:
    """What NVIDIA's DRA driver publishes for a node (cmd/gpu-kubelet-plugin/deviceinfo.go)."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpus"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {
                        "type": {"string": "gpu"},
                        "architecture": {"string": gpu.family},
                        "productName": {"string": gpu.name},
                        "cudaComputeCapability": {"version": gpu.compute_capability},
                    },
                    "capacity": {"memory": {"value": f"{gpu.memory_bytes // MIB}Mi"}},
                }
                for index in range(count)
            ],
        },
    }


DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {
        "selectors": [
            {
                "cel": {
                    "expression": 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"'
                }
            }
        ]
    },
}
"""As the driver's chart makes it (templates/deviceclass-gpu.yaml)."""
