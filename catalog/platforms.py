"""Versions of clouds and node images: floors, support, and what is known to be bad."""

from __future__ import annotations

EKS_OLDEST = 33
"""Oldest Kubernetes minor on offer, in extended support (EKS user guide, kubernetes-versions; 2026-08)."""
EKS_STANDARD_SUPPORT = 34
EKS_DRA_FLOOR = 34
"""resource.k8s.io/v1 is served since 1.34 (upstream; EKS user guide, device-management-nvidia-dra)."""
NVIDIA_AMI_FLOOR = "20260714"
"""Accelerated AMI release with RAID reassembly and NVSwitch services (amazon-eks-ami CHANGELOG; #2755, #2239)."""
P6_B300_REGIONS = ("us-east-1", "us-west-2", "us-gov-east-1")
"""Regions with capacity blocks of p6-b300 (EC2 docs as of 2026-07-08, quoted in awslabs/awsome-distributed-ai)."""

GKE_A4X_MAX_FLOORS = ((1, 34, 3, 1318000), (1, 35, 0, 2745000))
"""Lowest GKE version in each minor for a4x-maxgpu-4g-metal (docs of A4X Max, quoted in NVIDIA/aicr)."""
GKE_TPU7X_FLOOR = (1, 34, 0, 2201000)
"""Lowest GKE Standard version for tpu7x (docs.cloud.google.com, tpu-ironwood)."""
GKE_BAD_VERSIONS = {
    "1.36.0-gke.4681000": "every CUDA context fails with 'CUDA-capable device(s) is/are busy or unavailable' although "
    "nvidia-smi looks fine; 1.36.0-gke.4447000 is good",
}
"""Node versions that operators reported as broken on GB300 (field notes, 2026-07)."""

HYPERDISK_ML_QUOTA_MIBPS = 30_720
"""Regional HDML_TOTAL_THROUGHPUT of one project (public Terraform variables of a Kimi K3 deployment)."""
