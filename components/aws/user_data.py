"""Launch-template pieces of an EKS managed node group that are plain values. Pure; no Pulumi."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

INSTANCE_STORE_MOUNT = "/mnt/k8s-disks/0"
"""Where nodeadm mounts the RAID0 array of the instance-store disks (awslabs/amazon-eks-ami, setup-local-disks)."""

BOUNDARY = "node-config"

NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
  featureGates:
    FastImagePull: true
"""
"""RAID0 over the instance store, which also takes over the kubelet's and containerd's directories, and parallel pulls.

Only the part that we add: with an EKS image EKS merges its own cluster section.
"""


def nodeadm_user_data(node_config: str = NODE_CONFIG) -> str:
    """User data for AL2023: the NodeConfig as the one part of a MIME document, base64."""
    lines = [
        "MIME-Version: 1.0",
        f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"',
        "",
        f"--{BOUNDARY}",
        "Content-Type: application/node.eks.aws",
        "",
        node_config.rstrip("\n"),
        f"--{BOUNDARY}--",
        "",
    ]
    return base64.b64encode("\n".join(lines).encode()).decode()


def network_interfaces(*, efa_cards: Sequence[int], security_groups: list[Any]) -> list[dict[str, Any]]:
    """The node's interfaces: card 0 carries all IP traffic; each EFA card gets one EFA-only device at index 0.

    On p6-b300 card 0 has no EFA (aws/aws-parallelcluster#7143). EFA devices with an IP address would keep nodeadm from
    joining the node. Once interfaces are listed, EKS no longer adds the cluster's security group: each needs it.
    """
    common = {"delete_on_termination": "true", "security_groups": security_groups}
    primary = {"network_card_index": 0, "device_index": 0, "interface_type": "interface", **common}
    efa = [
        {"network_card_index": card, "device_index": 0, "interface_type": "efa-only", **common} for card in efa_cards
    ]
    return [primary, *efa]
