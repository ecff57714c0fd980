"""Marks each test with its level (the folder below tests/) so that `make test LEVEL=…` can choose."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        level = item.path.relative_to(TESTS).parts[0]
        item.add_marker(getattr(pytest.mark, level))
