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


MOST = 5  # inputs that ended their process, which the product reads, too


def fuzz(kind, rng, until):
    """Read changed sources; return how often their processes told what, and what ended some."""
    from fuzz import sources

    told, known, deadly = collections.Counter(), sources.seeds(kind), []
    last = ROOT / ".build/fuzz" / f"source-{kind}"
    last.parent.mkdir(parents=True, exist_ok=True)
    while not until(told):
        data = sources.changed(kind, rng, known)
        last.write_bytes(data)
        rows = rng.choice((3, 150))
        found = sources.read(kind, data, rows)
        told[found] += 1
        if found.startswith(sources.ENDED) and len(deadly) < MOST:
            deadly.append((data, rows))
    last.unlink(missing_ok=True)
    return told, deadly


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
    told, _ = fuzz(kind, random.Random(1), lambda told: told.total() >= 5)
    assert told.total() == 5


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("kind", KINDS)
def test_new_sources(kind):
    """What ends or occupies a process, as a defect of DuckDB, does so to that process alone."""
    from fuzz import sources

    end = time.monotonic() + SECONDS
    told, deadly = fuzz(kind, random.Random(time.time_ns()), lambda told: time.monotonic() > end)
    print(kind, told.total(), told.most_common(12))
    for data, rows in deadly:  # its owner is told of a wrong source
        with pytest.raises(sources.SourceError):
            sources.check(kind, data, rows)
    assert told.total() > SECONDS / 10
