"""Provisions small volumes on the real node: a directory below the state for each claim of the default StorageClass.

python -m sandbox.cluster.volumes STATE. It does what an external provisioner does: it waits until the scheduler has chosen a node
for a claim, makes the volume, and removes directory and volume when the claim is gone.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from sandbox.cluster.layout import NODE, Layout
from sandbox.cluster.processes import VOLUMES_SERVE

STORAGE_CLASS = "sandbox"
PROVISIONER = "llm-serving.sandbox/directory"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def provision(core: client.CoreV1Api, claim: Any, *, directory: Path) -> None:
    """Makes the volume for a claim that the scheduler has put on the real node."""
    name = f"pvc-{claim.metadata.uid}"
    place = directory / name
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    node_is_ours = client.V1NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[NODE])
    volume = client.V1PersistentVolume(
        metadata=client.V1ObjectMeta(name=name, annotations={"pv.kubernetes.io/provisioned-by": PROVISIONER}),
        spec=client.V1PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            storage_class_name=STORAGE_CLASS,
            persistent_volume_reclaim_policy="Delete",
            host_path=client.V1HostPathVolumeSource(path=str(place), type="Directory"),
            claim_ref=client.V1ObjectReference(
                kind="PersistentVolumeClaim",
                namespace=claim.metadata.namespace,
                name=claim.metadata.name,
                uid=claim.metadata.uid,
            ),
            node_affinity=client.V1VolumeNodeAffinity(
                required=client.V1NodeSelector(
                    node_selector_terms=[client.V1NodeSelectorTerm(match_expressions=[node_is_ours])]
                )
            ),
        ),
    )
    try:
        core.create_persistent_volume(volume)
    except client.ApiException as error:
        if error.status != 409:  # 409: a former round made it
            raise


def round_of_work(core: client.CoreV1Api, *, directory: Path) -> None:
    """Volumes for the claims that wait for one, and an end to the volumes whose claim is gone."""
    claims: list[Any] = core.list_persistent_volume_claim_for_all_namespaces().items
    for claim in claims:
        waits = claim.spec.storage_class_name == STORAGE_CLASS and not claim.spec.volume_name
        if waits and (claim.metadata.annotations or {}).get(SELECTED_NODE) == NODE:
            provision(core, claim, directory=directory)
    volumes: list[Any] = core.list_persistent_volume().items
    for volume in volumes:
        made_here = (volume.metadata.annotations or {}).get("pv.kubernetes.io/provisioned-by") == PROVISIONER
        if made_here and volume.status.phase in {"Released", "Failed"}:
            shutil.rmtree(directory / volume.metadata.name, ignore_errors=True)
            core.delete_persistent_volume(volume.metadata.name)


def main() -> None:
    layout = Layout.load(Path(sys.argv[1]))
    assert layout is not None, "the supervisor starts this with a whole state directory"
    VOLUMES_SERVE.unlink(missing_ok=True)
    # Read here, because the client takes a path with a colon for two.
    config.load_kube_config_from_dict(json.loads((layout.pki / "sandbox.kubeconfig").read_text()))
    core = client.CoreV1Api()
    while True:
        try:
            round_of_work(core, directory=layout.state / "volumes")
            VOLUMES_SERVE.touch()
        except (client.ApiException, HTTPError) as error:
            print(f"volumes: {error}", file=sys.stderr, flush=True)
        time.sleep(1)


if __name__ == "__main__":
    main()
