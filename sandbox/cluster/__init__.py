"""The embedded cluster: a real Kubernetes control plane, and with it a real node, in namespaces of its own."""

from sandbox.cluster.control import kubectl, running, start, status, stop
from sandbox.cluster.errors import SandboxError
from sandbox.cluster.layout import NODE, Layout, Profile

__all__ = ["NODE", "Layout", "Profile", "SandboxError", "kubectl", "running", "start", "status", "stop"]
