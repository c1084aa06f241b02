"""Programs whose analysis would take long: live workers refuse them, and run what comes next."""

from __future__ import annotations

import pytest
from bank_and_shop import CATALOGUE, CLUSTER, at_bank, people
from mplang_analysis import MAX_EFFORT
from mplang_analysis.effort import PER_OP

import mplang_core as mp
from mplang_core.errors import MPLangError

SOURCES = 400  # columns of a table
MOVES = MAX_EFFORT // PER_OP  # by number alone


def to_and_fro(value, times: int):
    """Move a value from the bank to the shop and back, again and again."""
    for _ in range(times):
        value = mp.put("P0", mp.put("P1", value))
    return value


def many_moves():
    return to_and_fro(mp.put("P0", mp.constant(1)), MOVES // 2)


def many_columns():
    wide = at_bank(lambda t: t.select(**{f"c{i}": t.id + i for i in range(SOURCES)}), people("id"))
    return to_and_fro(wide, MOVES // 10)


PROGRAMS = [many_moves, many_columns]


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda each: each.__name__)
def artifact(request):
    with mp.catalogue(CATALOGUE):
        made = mp.compile(request.param, cluster_spec=CLUSTER)
        return mp.artifact.load(mp.artifact.pack(made))


@pytest.mark.long("traces and sends tens of thousands of ops")
def test_a_program_that_is_too_involved_is_refused_by_each_worker(bank, artifact):
    with bank.connect() as host, pytest.raises(MPLangError) as found:
        artifact.run(host)
    assert "is too complex to compute" in str(found.value)
    assert f"more than {MAX_EFFORT:,} steps" in str(found.value)
    with bank.connect("other") as other:
        assert mp.fetch(other, mp.evaluate(other, lambda: mp.put("P1", mp.constant(7)))) == 7
