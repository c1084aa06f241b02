"""What SPU's tests change around it: the environment of its links, and its passes."""

from __future__ import annotations

import pytest
from mplang_spu import engine, lowering
from mplang_spu.config import ENV


@pytest.fixture
def environment(monkeypatch):
    """Run as a worker whose operator chose no way of linking."""
    monkeypatch.delenv(ENV, raising=False)


def forget_programs():
    """Compile again what was compiled."""
    engine.compile.cache_clear()
    engine.compile_code.cache_clear()


@pytest.fixture
def bare(monkeypatch):
    """Run SPU without the passes that correct libspu's results."""
    monkeypatch.setattr(lowering, "PASSES", ())
    forget_programs()
    yield
    forget_programs()
