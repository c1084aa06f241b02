"""Workers that tests share: starting some takes seconds."""

from __future__ import annotations

import pytest
from mplang_http import LocalCluster

KIT = ("mplang_core.testing.dialect",)


@pytest.fixture(scope="session")
def five():
    """Five workers."""
    with LocalCluster(5, insecure=True, imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def three():
    """Three workers of the test's own: it may do with them what it wants."""
    with LocalCluster(3, insecure=True, imports=KIT) as cluster:
        yield cluster
