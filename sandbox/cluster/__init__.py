"""The embedded cluster: a real Kubernetes control plane, and with it a real node, in namespaces of its own."""

from sandbox.cluster.control import running, start, status, stop
from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import NETWORKS, NODE, Layout, Profile
from sandbox.cluster.machine import check_machine
from sandbox.cluster.objects import kubectl, kubectl_command

__all__ = [
    "NETWORKS",
    "NODE",
    "Layout",
    "Profile",
    "SandboxError",
    "check_machine",
    "kubectl",
    "kubectl_command",
    "running",
    "start",
    "status",
    "stop",
]
