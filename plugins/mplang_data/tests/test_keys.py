"""Bounds of how many different values a column has, as owners publish them."""

from __future__ import annotations

import pandas as pd
import pytest
from mplang_data import DataSet, Description, SourceError
from mplang_data.check import check_data_set

from mplang_core.errors import ConfigError

COLUMNS = {"id": "int64", "city": "string"}


def offered(tmp_path, kind, **fields):
    """Return a data set of 3,000 rows of 1,000 persons, in two cities or none."""
    frame = pd.DataFrame({"id": [i % 1000 for i in range(3000)], "city": ["a", "b", None] * 1000})
    path = tmp_path / f"people.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    options = {"csv": {"missing_strings": True}} if kind == "csv" else {}
    return DataSet(source=f"{kind}:{path}", **{"columns": COLUMNS, **options, **fields})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("keys", "column"),
    [({"id": 1000, "city": 2}, None), ({"id": 999}, "id"), ({"id": 1000, "city": 1}, "city")],
)
def test_a_check_counts_them(tmp_path, kind, keys, column):
    bounds = {name: {"at_most": most} for name, most in keys.items()}
    data_set = offered(tmp_path, kind, keys=bounds)
    if column is None:
        assert check_data_set(data_set) == 3000
        return
    with pytest.raises(
        SourceError, match=f"'{column}' has more different values than {keys[column]}"
    ):
        check_data_set(data_set)


def test_those_of_a_column_that_is_only_matched_on_are_counted(tmp_path):
    fields = {"columns": {"city": "string"}, "match": {"id": "int64"}}
    assert check_data_set(offered(tmp_path, "parquet", **fields, keys={"id": {"at_most": 1000}}))
    with pytest.raises(SourceError, match="column 'id' has more different values than 10, as"):
        check_data_set(offered(tmp_path, "parquet", **fields, keys={"id": {"at_most": 10}}))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"columns": COLUMNS, "keys": {"name": {"at_most": 3}}},
            "keys: 'name' is not a column that is",
        ),
        ({"columns": COLUMNS, "keys": {"id": 3}}, r"keys\.id"),
        ({"columns": COLUMNS, "keys": {"id": {"at_most": -1}}}, "at_most"),
        ({"array": "f64[3]", "keys": {"id": {"at_most": 3}}}, "an array has no rows, keys, match"),
    ],
)
def test_a_wrong_bound_is_refused(fields, text):
    with pytest.raises(ConfigError, match=text):
        Description(**fields)


def test_they_are_public():
    known = Description(columns=COLUMNS, keys={"id": {"at_most": 5}})
    assert known.public()["keys"] == {"id": {"at_most": 5}}
