"""Readers of sources, each in its confined process: by ``make fuzz`` on new inputs for a minute."""

from __future__ import annotations

import collections
import os
import random
import time

import pytest
from fuzz.run import ROOT

SECONDS = int(os.environ.get("MPLANG_FUZZ_SECONDS", "60"))  # per kind
KINDS = ("arrow", "csv", "duckdb", "npy", "parquet")

pytestmark = pytest.mark.needs("data", "ibis")


def fuzz(kind, rng, until):
    """Read changed sources; return what their processes told, and how often."""
    from fuzz import sources

    told, known = collections.Counter(), sources.seeds(kind)
    last = ROOT / ".build/fuzz" / f"source-{kind}"
    last.parent.mkdir(parents=True, exist_ok=True)
    while not until(told):
        data = sources.changed(kind, rng, known)
        last.write_bytes(data)
        told[sources.read(kind, data, rng.choice((3, 150)))] += 1
    last.unlink(missing_ok=True)
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_is_as_it_was_is_read(kind):
    from fuzz import sources

    known = sources.seeds(kind)
    half = len(known) // 2
    found = [sources.read(kind, data, rows=3 if i < half else 150) for i, data in enumerate(known)]
    assert found == ["read"] * len(known)


def test_checksums_of_a_duckdb_file_are_known():
    """Else its reader sees wrong checksums alone."""
    from fuzz import sources

    for data in sources.seeds("duckdb"):
        assert bytes(sources._summed(bytearray(data))) == data


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_source_is_read_or_refused(kind):
    told = fuzz(kind, random.Random(1), lambda told: told.total() >= 5)
    assert told.total() == 5


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("kind", KINDS)
def test_new_sources(kind):
    """What ends or occupies a process, as a defect of DuckDB, does so to that process alone."""
    end = time.monotonic() + SECONDS
    told = fuzz(kind, random.Random(time.time_ns()), lambda told: time.monotonic() > end)
    print(kind, told.total(), told.most_common(12))
    assert told.total() > SECONDS / 10
