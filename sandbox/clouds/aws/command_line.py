"""A stand-in for the `aws` command that kubeconfigs of EKS run for a token: it hands out the embedded control plane's
credential, and nothing else. A real `aws` signs an address with the caller's keys, which a simulation does not have."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path
from typing import Any

import yaml

SCRIPT = """\
#!/bin/sh
# Stands in for the AWS command line, for the one command that a kubeconfig of EKS runs.
case " $* " in
  *" eks get-token "*) exec cat {credential} ;;
  *) echo "the simulated aws command only knows eks get-token, not: aws $*" >&2; exit 2 ;;
esac
"""


def install(directory: Path, *, kubeconfig: Path) -> None:
    """Writes `aws` and the credential that it prints into the directory, which is to come first on PATH."""
    directory.mkdir(parents=True, exist_ok=True)
    credential = directory / "credential.json"
    credential.touch(mode=0o600)
    credential.write_text(
        json.dumps(
            {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "kind": "ExecCredential",
                "spec": {},
                "status": _status(kubeconfig),
            }
        )
    )
    command = directory / "aws"
    command.write_text(SCRIPT.format(credential=shlex.quote(str(credential))))
    command.chmod(0o755)


def _status(kubeconfig: Path) -> dict[str, Any]:
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    if "token" in user:
        return {"token": user["token"]}
    members = {"client-certificate-data": "clientCertificateData", "client-key-data": "clientKeyData"}
    return {ours: base64.b64decode(user[theirs]).decode() for theirs, ours in members.items()}
