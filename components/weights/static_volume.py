"""A file system that exists already, as a claim that many nodes may mount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as k8s

NO_WAIT: Mapping[str, str] = {"pulumi.com/skipAwait": "true"}
"""The provider waits for a claim five minutes, whatever one tells it; the Job that mounts it shows that it is bound."""


@dataclass(frozen=True, kw_only=True)
class StaticVolumeArgs:
    """driver, handle, attributes, mount_options: as the CSI driver names the file system. gib: what the claim asks for."""

    namespace: pulumi.Input[str]
    claim: str
    driver: str
    handle: pulumi.Input[str]
    attributes: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    mount_options: tuple[str, ...] = ()
    gib: int


class StaticVolume(pulumi.ComponentResource):
    """A PersistentVolume bound to one claim by name; deleting either leaves the file system alone.

    claim: what pods that mount it depend on.
    """

    def __init__(self, name: str, *, args: StaticVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:weights:StaticVolume", name, {}, opts)
        size = {"storage": f"{args.gib}Gi"}
        volume = k8s.core.v1.PersistentVolume(
            name,
            metadata={"name": name, "annotations": dict(NO_WAIT)},
            spec={
                "capacity": size,
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "mountOptions": list(args.mount_options),
                "claimRef": {"namespace": args.namespace, "name": args.claim},
                "csi": {
                    "driver": args.driver,
                    "volumeHandle": args.handle,
                    "volumeAttributes": dict(args.attributes),
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.claim = k8s.core.v1.PersistentVolumeClaim(
            name,
            metadata={"name": args.claim, "namespace": args.namespace, "annotations": dict(NO_WAIT)},
            spec={
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": size},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[volume]),
        )
        self.register_outputs({})
