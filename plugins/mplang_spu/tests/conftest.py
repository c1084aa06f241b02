"""What SPU's tests change around it: the environment of its links, and its passes."""

from __future__ import annotations

import pytest
from mplang_spu import engine, lowering
from mplang_spu.config import ENV


@pytest.fixture
def environment(monkeypatch):
    """Run as a worker whose operator chose no way of linking."""
    monkeypatch.delenv(ENV, raising=False)


@pytest.fixture
def bare(monkeypatch):
    """Run SPU without the passes that correct libspu's results."""
    monkeypatch.setattr(lowering, "PASSES", ())
    engine.compile.cache_clear()
    yield
    engine.compile.cache_clear()
