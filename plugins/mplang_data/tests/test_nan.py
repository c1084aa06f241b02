"""NaN of a data set is a missing value or an error, as its owner declares, wherever it is used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data import DataSet, SourceError
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from mplang_tables import to_tensor

import mplang_core as mp
from mplang_core.errors import ConfigError, MPLangError, PartyError

BANK = mp.ClusterSpec([{"name": "bank"}])
COLUMNS = {"id": "float64", "pay": "float64"}
USES = {
    "rows": lambda t: t,
    "SQL": lambda t: mp.device("P0")(lambda t: t.agg(most=t.pay.max(), mean=t.pay.mean()))(t),
    "a filter": lambda t: mp.device("P0")(lambda t: t.filter(t.pay > 2))(t),
    "a guard": lambda t: mp.guard.aggregate(t, unit="id", k=2, most=("pay", "sum")),
    "a noisy sum": lambda t: mp.dp.sum(t, "pay", low=0, high=9, unit="id", epsilon=20.0),
    "a tensor": lambda t: mp.device("P0")(to_tensor)(t, rows=3),
}


@pytest.fixture(params=["csv", "parquet", "arrow"])
def source(request, tmp_path):
    table = pa.table({"id": [1.0, 2.0, 3.0], "pay": [1.0, np.nan, 3.0]})
    if request.param == "csv":
        (tmp_path / "x.csv").write_text("id,pay\n1,1\n2,NaN\n3,3\n")
    elif request.param == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
    else:
        with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
            writer.write_table(table)
    return f"{request.param}:{tmp_path}/x.{request.param}"


def use(source, how, **declared):
    data = {"bank": {"d": {"source": source, "columns": COLUMNS, **declared}}}
    with mp.Simulator(BANK, data=data) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, lambda: USES[how](mp.dataset("bank", "d"))))
        return found.to_pylist() if hasattr(found, "to_pylist") else found


def test_nan_is_a_missing_value_where_that_is_declared(source):
    declared = {"nan": "missing", "ranges": {"pay": [0, 9]}}
    assert [row["pay"] for row in use(source, "rows", **declared)] == [1, None, 3]
    assert use(source, "SQL", **declared) == [{"most": 3, "mean": 2}]
    assert use(source, "a guard", **declared) == [{"most": 4}]
    with pytest.raises(PartyError, match="column 'pay' has nulls"):
        use(source, "a tensor", **declared)


@pytest.mark.parametrize("how", USES)
def test_nan_is_an_error_where_that_is_declared(source, how):
    with pytest.raises(MPLangError, match="column 'pay' has NaN, which is an error"):
        use(source, how, nan="error")


def test_an_owner_finds_it_by_a_check_and_arrays_have_no_missing_values(source, tmp_path):
    with pytest.raises(SourceError, match="not what|column 'pay' has NaN"):
        check_data_set(DataSet(source=source, columns=COLUMNS, nan="error"))
    assert check_data_set(DataSet(source=source, columns=COLUMNS, nan="missing")) == 3
    fields = {"source": f"npy:{tmp_path}/a.npy", "array": "f64[1]"}
    with pytest.raises(ConfigError, match="an array has no missing values"):
        read_data_sets({"d": {**fields, "nan": "missing"}}, "/")


def test_frames_of_pandas_have_nulls_in_place_of_nan():
    frame = pd.DataFrame({"id": [1, 2], "pay": [1.0, np.nan]})
    with mp.Simulator(BANK, data={"bank": {"d": frame}}) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, lambda: mp.dataset("bank", "d")))
    assert found.column("pay").to_pylist() == [1, None]
