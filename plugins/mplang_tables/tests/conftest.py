"""A simulator of two parties."""

from __future__ import annotations

import pytest

import mplang_core as mp


@pytest.fixture
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=20.0) as made:
        yield made
