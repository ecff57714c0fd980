"""The programs that are built from Go modules: which module, which package, which version is stamped in, and how long it takes.

Each tool's dependencies are pinned by the go.mod and go.sum of its module under sandbox/tools/.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PULUMI = "3.276.0"
KUBERNETES = "1.35.4"
KUBERNETES_PROVIDER = "4.34.2"

KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
"""What KWOK does with nodes and pods, as its module has it."""

_KUBE_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One binary.

    `cpu_seconds` is the compile time from an empty build cache, measured on one machine with 2 cores (2026-12-01);
    it only feeds the estimate that is shown.
    """

    name: str
    module: str
    package: str
    cpu_seconds: int
    stamps: dict[str, str] = field(default_factory=dict)
    embeds: dict[str, str] = field(default_factory=dict)
    """Files that the package embeds and that a module holds: file name → module path and file in it, as module:file."""
    beside: dict[str, str] = field(default_factory=dict)
    """Files that must lie next to the binary, in the same form."""


_TOOLS = (
    # What the cheap checks need comes first: the engine, then the control plane, then all that a real node runs.
    Tool(
        name="pulumi",
        module="pulumi",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        cpu_seconds=780,
        stamps={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI}"},
    ),
    Tool(
        name="pulumi-language-python",
        module="pulumi",
        package="./language-host",
        cpu_seconds=5,
        beside={
            "pulumi-language-python-exec": "github.com/pulumi/pulumi/sdk/v3:python/cmd/pulumi-language-python-exec"
        },
    ),
    Tool(name="etcd", module="etcd", package=".", cpu_seconds=120),
    Tool(
        name="kube",
        module="kube",
        package=".",
        cpu_seconds=780,
        stamps={
            f"{_KUBE_VERSION}.gitVersion": f"v{KUBERNETES}",
            f"{_KUBE_VERSION}.gitMajor": KUBERNETES.split(".")[0],
            f"{_KUBE_VERSION}.gitMinor": KUBERNETES.split(".")[1],
            f"{_KUBE_VERSION}.gitTreeState": "clean",
            # Parts of Kubernetes refuse an unset commit; the version above is the one that go.sum pins.
            f"{_KUBE_VERSION}.gitCommit": "0" * 40,
            "k8s.io/client-go/pkg/version.gitVersion": f"v{KUBERNETES}",
        },
    ),
    Tool(
        name="kwok",
        module="kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        cpu_seconds=160,
        beside={stage.rpartition("/")[-1]: f"sigs.k8s.io/kwok:kustomize/stage/{stage}" for stage in KWOK_STAGES},
    ),
    Tool(
        name="pulumi-resource-kubernetes",
        module="kubernetes-provider",
        package=".",
        cpu_seconds=1200,
        stamps={"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version": KUBERNETES_PROVIDER},
        embeds={
            name: f"github.com/pulumi/pulumi-kubernetes/provider/v4:cmd/pulumi-resource-kubernetes/{name}"
            for name in ("schema.json", "terraform-mapping.json")
        },
    ),
    Tool(name="lws-manager", module="llm", package="sigs.k8s.io/lws/cmd", cpu_seconds=300),
    Tool(name="versitygw", module="versitygw", package="github.com/versity/versitygw/cmd/versitygw", cpu_seconds=140),
    Tool(
        name="llm-d-inference-sim",
        module="llm",
        package="github.com/llm-d/llm-d-inference-sim/cmd/llm-d-inference-sim",
        cpu_seconds=300,
    ),
    Tool(name="epp", module="llm", package="sigs.k8s.io/gateway-api-inference-extension/cmd/epp", cpu_seconds=150),
    Tool(name="coredns", module="coredns", package="github.com/coredns/coredns", cpu_seconds=240),
    Tool(
        name="kube-router",
        module="kube-router",
        package="github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
        cpu_seconds=220,
    ),
    Tool(name="pause", module="pause", package=".", cpu_seconds=1),
    Tool(name="actionlint", module="actionlint", package="github.com/rhysd/actionlint/cmd/actionlint", cpu_seconds=15),
)

TOOLS: dict[str, Tool] = {tool.name: tool for tool in _TOOLS}
