"""The programs of a cluster and their command lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.cluster.layout import API_PORT, NODE, POD_NETWORK, Layout, Profile
from sandbox.toolchain.catalog import KWOK_STAGES

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
"""Seen in the cluster's own mount namespace only."""

VOLUMES_SERVE = Path("/run/volumes-serve")
"""Made by the provisioner after its first round, in the cluster's own mount namespace."""

CONTAINERD_ROOT = "/var/lib/containerd"
KUBELET_ROOT = "/var/lib/kubelet"
"""Directories of the state, at the places where every node has them: paths of sockets and mounts may be neither long nor odd."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One program: its name in logs and status, its command, what it waits for, and how to tell that it serves."""

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    """URLs that answer 200, or paths of sockets that exist, once it serves; none: as soon as it runs."""


def processes(layout: Layout, binary: Callable[[str], Path], *, pause_image: str) -> list[Process]:
    """Every program of the layout's profile; writes the configuration files that they read."""
    kube = str(binary("kube"))
    pki = layout.pki
    every = [
        Process(
            name="etcd",
            command=(
                str(binary("etcd")),
                f"--data-dir={layout.state / 'etcd'}",
                "--listen-client-urls=http://127.0.0.1:2379",
                "--advertise-client-urls=http://127.0.0.1:2379",
                "--listen-peer-urls=http://127.0.0.1:2380",
                "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                "--initial-cluster=default=http://127.0.0.1:2380",
                # Survives the death of processes, which is what happens here; not of the machine, which ends the cluster anyway.
                "--unsafe-no-fsync",
                "--log-level=warn",
            ),
            ready=("http://127.0.0.1:2379/health",),
        ),
        Process(
            name="kube-apiserver",
            after=("etcd",),
            command=(
                kube,
                "kube-apiserver",
                "--etcd-servers=http://127.0.0.1:2379",
                f"--advertise-address={layout.node_address}",
                f"--service-cluster-ip-range={layout.service_network}",
                f"--tls-cert-file={pki / 'apiserver.crt'}",
                f"--tls-private-key-file={pki / 'apiserver.key'}",
                f"--client-ca-file={pki / 'ca.crt'}",
                f"--kubelet-client-certificate={pki / 'apiserver-kubelet.crt'}",
                f"--kubelet-client-key={pki / 'apiserver-kubelet.key'}",
                f"--kubelet-certificate-authority={pki / 'ca.crt'}",
                "--kubelet-preferred-address-types=InternalIP",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={pki / 'service-accounts.pub'}",
                f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                "--profiling=false",
            ),
            ready=(f"https://127.0.0.1:{API_PORT}/readyz",),
        ),
        Process(
            name="kube-controller-manager",
            after=("kube-apiserver",),
            command=(
                kube,
                "kube-controller-manager",
                f"--kubeconfig={pki / 'controller-manager.kubeconfig'}",
                f"--service-account-private-key-file={pki / 'service-accounts.key'}",
                f"--root-ca-file={pki / 'ca.crt'}",
                "--use-service-account-credentials",
                "--leader-elect=false",
                "--profiling=false",
            ),
            ready=("https://127.0.0.1:10257/healthz",),
        ),
        Process(
            name="kube-scheduler",
            after=("kube-apiserver",),
            command=(
                kube,
                "kube-scheduler",
                f"--kubeconfig={pki / 'scheduler.kubeconfig'}",
                "--leader-elect=false",
                "--profiling=false",
            ),
            ready=("https://127.0.0.1:10259/healthz",),
        ),
        Process(
            name="kwok",
            after=("kube-apiserver",),
            command=(
                str(binary("kwok")),
                f"--kubeconfig={pki / 'sandbox.kubeconfig'}",
                "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                "--node-lease-duration-seconds=40",
                "--server-address=127.0.0.1:10247",
                *(f"--config={binary('kwok').with_name(Path(stage).name)}" for stage in KWOK_STAGES),
            ),
            ready=("http://127.0.0.1:10247/healthz",),
        ),
    ]
    if layout.profile is Profile.NODE:
        every += _node(layout, kube, binary, pause_image=pause_image)
    return every


def _node(layout: Layout, kube: str, binary: Callable[[str], Path], *, pause_image: str) -> list[Process]:
    pki = layout.pki
    configuration = layout.state / "config"
    configuration.mkdir(exist_ok=True)
    containerd = _save(configuration / "containerd.toml", _containerd(layout, pause_image=pause_image))
    _save(layout.state / "cni" / "10-sandbox.conflist", json.dumps(_cni(), indent=1))
    kubelet = _save(configuration / "kubelet.json", json.dumps(_kubelet(layout), indent=1))
    proxy = _save(configuration / "kube-proxy.json", json.dumps(_kube_proxy(layout), indent=1))
    return [
        Process(name="containerd", command=("containerd", "--config", str(containerd)), ready=(CONTAINERD_SOCKET,)),
        Process(
            name="kubelet",
            after=("kube-apiserver", "containerd"),
            command=(
                kube,
                "kubelet",
                f"--kubeconfig={pki / 'kubelet.kubeconfig'}",
                f"--config={kubelet}",
                f"--hostname-override={NODE}",
                f"--node-ip={layout.node_address}",
            ),
            ready=("http://127.0.0.1:10248/healthz", f"https://127.0.0.1:{API_PORT}/api/v1/nodes/{NODE}"),
        ),
        Process(
            name="kube-proxy",
            after=("kube-apiserver",),
            command=(kube, "kube-proxy", f"--config={proxy}"),
            ready=("http://127.0.0.1:10256/healthz",),
        ),
        Process(
            name="kube-router",
            after=("kubelet",),
            command=(
                str(binary("kube-router")),
                f"--kubeconfig={pki / 'sandbox.kubeconfig'}",
                f"--hostname-override={NODE}",
                "--run-firewall=true",
                "--run-router=false",
                "--run-service-proxy=false",
                f"--service-cluster-ip-range={layout.service_network}",
                "--health-port=20244",
                "--metrics-port=0",
            ),
            ready=("http://127.0.0.1:20244/healthz",),
        ),
        Process(
            name="volumes",
            after=("kube-apiserver",),
            command=(sys.executable, "-m", "sandbox.cluster.volumes", str(layout.state)),
            ready=(str(VOLUMES_SERVE),),
        ),
    ]


def _containerd(layout: Layout, *, pause_image: str) -> str:
    return f"""version = 2
root = "{CONTAINERD_ROOT}"
state = "/run/containerd/state"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  # Without CAP_SYS_RESOURCE a lower score is refused and no container starts.
  restrict_oom_score_adj = true
  sandbox_image = "{pause_image}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.state / "cni"}"
"""


def _cni() -> dict[str, object]:
    # Point to point and not a bridge: what goes from pod to pod is routed, so that NetworkPolicies see it without br_netfilter.
    ipam = {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": "0.4.0",
        "name": "sandbox",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _kubelet(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet-server.key"),
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDNS": [layout.dns_address],
        "clusterDomain": "cluster.local",
        "failSwapOn": False,
        # The cluster has no way out, so there is no upstream resolver either.
        "resolvConf": "",
        "podCIDR": POD_NETWORK,
        # The node shares the machine's disk: only a disk that is really full evicts.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 200,
        # A stopped pod is noticed at once.
        "syncFrequency": "10s",
    }


def _kube_proxy(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.pki / "kube-proxy.kubeconfig")},
        "hostnameOverride": NODE,
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        # The machine's connection table is not ours to size.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }


def _save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
