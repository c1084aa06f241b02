"""Numbers and times that a type cannot hold: refused where they enter, and never another value."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import DataSet, SourceError
from mplang_data.ext import check_data_set
from mplang_tables import arrow

import mplang_core as mp
from mplang_core.errors import ConfigError, MPLangError

BANK = mp.ClusterSpec([{"name": "bank"}])
LATE = dt.datetime(9999, 12, 23, 23, 59, 59)
EARLY = dt.datetime(1, 1, 1)
NOW = dt.datetime(2024, 1, 2, 3, 4, 5, 678_900)


def read(source, columns, fn=lambda t: t):
    data = {"bank": {"d": {"source": source, "columns": columns}}}
    with mp.Simulator(BANK, data=data) as sim:
        found = mp.evaluate(sim, lambda: mp.device("P0")(fn)(mp.dataset("bank", "d")))
        return mp.fetch(sim, found).to_pylist()


def int96(folder, times, unit="us"):
    table = pa.table({"v": pa.array(times, pa.timestamp(unit)), "n": list(range(len(times)))})
    pq.write_table(table, folder / "x.parquet", use_deprecated_int96_timestamps=True)
    return f"parquet:{folder}/x.parquet"


@pytest.mark.parametrize("when", [LATE, EARLY])
def test_int96_times_beyond_nanoseconds_are_refused_as_these_and_kept_as_microseconds(
    tmp_path, when
):
    source = int96(tmp_path, [NOW, None, when])
    told = "column 'v' has times that nanoseconds .* do not reach .* timestamp\\[us\\]"
    with pytest.raises(MPLangError, match=told):
        read(source, {"v": "timestamp[ns]"})
    with pytest.raises(SourceError, match=told):
        check_data_set(DataSet(source=source, columns={"v": "timestamp[ns]"}))
    found = read(source, {"v": "timestamp[us]", "n": "int64"})
    assert [row["v"] for row in found] == [NOW, None, when]
    late = read(source, {"v": "timestamp[us]"}, lambda t: t.filter(t.v > dt.datetime(3000, 1, 1)))
    assert [row["v"] for row in late] == [each for each in [when] if each.year > 3000]


def test_int96_times_within_nanoseconds_are_read_in_each_unit_that_holds_them(tmp_path):
    source = int96(tmp_path, [NOW, None])
    (first, second) = read(source, {"v": "timestamp[ns]"})
    assert (first["v"].to_pydatetime(), second["v"]) == (NOW, None)
    with pytest.raises(MPLangError, match="more digits than a timestamp.ms..*timestamp.ns."):
        read(source, {"v": "timestamp[ms]"})
    nanoseconds = int96(tmp_path, [1_700_000_000_123_456_789], "ns")
    with pytest.raises(MPLangError, match="more digits than a timestamp\\[us\\]"):
        read(nanoseconds, {"v": "timestamp[us]"})


def test_other_columns_of_a_file_with_int96_times_are_read_as_before(tmp_path):
    assert read(int96(tmp_path, [LATE]), {"n": "int64"}) == [{"n": 0}]


SUMMER = dt.timezone(dt.timedelta(hours=2))
LOSSY = {
    "times with and without a zone": [NOW, NOW.replace(tzinfo=SUMMER)],
    "zones first": [NOW.replace(tzinfo=SUMMER), NOW],
    "a time among dates": [NOW.date(), NOW],
    "integers beyond 64 bits": [2**64],
    "integers that floats round": [1.5, 2**53 + 1],
    "half floats": np.array([1.5], np.float16),
    "times with a zone of their own": pa.array([0], pa.timestamp("us", "Europe/Berlin")),
    "hours of 64-bit dates": pa.array([3_600_000], pa.date64()),
    "decimals beside floats": pa.array([2], pa.decimal256(40, 2)),
}


@pytest.mark.parametrize("lossy", LOSSY)
def test_columns_that_no_type_holds_are_refused_by_name(lossy):
    with pytest.raises((TypeError, ValueError)):
        arrow.normalize({"v": LOSSY[lossy]})
    with pytest.raises(ConfigError, match="data set 'd' of bank"):
        mp.Simulator(BANK, data={"bank": {"d": {"v": LOSSY[lossy]}}})
