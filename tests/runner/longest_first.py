"""Plugin of pytest: processes of pytest-xdist take the files first that take longest.

A file is run by one process. One that takes long and is taken last is waited for by the others;
pytest-xdist goes by the number of tests, of which those that start processes take longer.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

FOLDERS = {"integration", "mplang_grpc", "mplang_worker"}
"""Folders whose tests start processes."""

TIMES = 4
"""How much longer these take than others do."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist keep the order."""
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)  # after those are left out that do not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the files of a process of pytest-xdist; the tests of a file stay in their order."""
    if not hasattr(config, "workerinput"):
        return
    sizes: Counter[Path] = Counter()
    for item in items:
        sizes[item.path] += TIMES if FOLDERS.intersection(item.path.parts) else 1
    items.sort(key=lambda item: (-sizes[item.path], item.path))
