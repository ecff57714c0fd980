"""Clusters for this level: one control plane for all that only reads and writes objects."""

from collections.abc import Iterator

import pytest

from sandbox.cluster import Layout, Profile
from tests.support.cluster import started


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    with started(tmp_path_factory.mktemp("control-plane") / "state", profile=Profile.CONTROL_PLANE) as layout:
        yield layout
