"""Fixtures, and nothing to collect in an environment without the engines."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

ENGINES = ("crypto", "http", "ibis", "jax", "simulator", "spu")

collect_ignore_glob = [] if all(find_spec(f"mplang_{name}") for name in ENGINES) else ["test_*.py"]


@pytest.fixture
def lab() -> Iterator[Any]:
    """Return a simulator of experiments."""
    from noninterference.generator import CLUSTER
    from noninterference.lab import Lab

    with Lab(CLUSTER) as made:
        yield made
