"""The images of the embedded cluster: made here, without a daemon, under the references that the catalogue gives.

They are loaded as copies below MIRROR, which is the setting that an air-gapped site uses: `artifacts.mirror`.
"""

from sandbox.images.archives import COREDNS, MIRROR, PAUSE, archives
from sandbox.images.bundle import make_bundle

__all__ = ["COREDNS", "MIRROR", "PAUSE", "archives", "make_bundle"]
