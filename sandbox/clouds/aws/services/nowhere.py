"""The certificate of a cluster that has no control plane behind it: well-formed, and the same after a restart."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from moto.moto_api._internal import mock_random

LIFETIME = timedelta(days=3650)


def certificate(cluster: str, now: datetime) -> str:
    """Base64 of a PEM certificate of an authority that signs nothing."""
    key = Ed25519PrivateKey.from_private_bytes(mock_random.randbytes(32))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cluster)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(mock_random.getrandbits(64) | 1)
        .not_valid_before(now)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()
