"""Options of CSV files: what is none of them is refused with its row, what is one is exact."""

from __future__ import annotations

import decimal
import re

import pytest
from csv_data import rows_of, stored
from mplang_data import DataSet, SourceError
from mplang_data.schema import propose

from mplang_core.errors import ConfigError

WRONG_VALUES = {
    "a thousand in a wrong place": ({"decimal": ",", "thousands": "."}, "double", "1.23", "row 3"),
    "no such day": ({"dates": "%d.%m.%Y"}, "date", "31.02.2024", "there is no such day"),
    "a year of two digits": ({"dates": "%d.%m.%Y"}, "date", "31.01.24", "its format is %d.%m.%Y"),
    "a month in its place": ({"dates": "%d/%m/%Y"}, "date", "01/31/2024", "row 3"),
    "more digits": (
        {"decimal": ",", "thousands": "."},
        "decimal(9, 2)",
        "1.234,567",
        "more digits",
    ),
    "beyond int64": (
        {"decimal": ",", "thousands": "."},
        "int64",
        "9.999.999.999.999.999.999",
        "row 3",
    ),
    "beyond int8": ({"decimal": ",", "thousands": "."}, "int8", "300", "row 3"),
    "a fraction": ({"decimal": ",", "thousands": "."}, "int64", "1,5", "row 3"),
    "percent": ({"decimal": ","}, "double", "12,5 %", "percent sign: write the column without it"),
    "euros": (
        {"decimal": ",", "thousands": "."},
        "double",
        "1.234,50 €",
        "it has a currency: write",
    ),
    "parentheses": ({"decimal": ","}, "double", "(1,5)", "negative: parentheses"),
    "a minus behind": ({"decimal": ","}, "double", "1,5-", "negative: trailing"),
    "another word": ({"missing": ["NA"]}, "int64", "n/a", "a word for no value.*missing"),
    "no word for a bool": (
        {"true_words": ["ja"], "false_words": ["nein"]},
        "bool",
        "true",
        "row 3",
    ),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_field_that_is_no_value_is_refused_with_its_row(tmp_path, name):
    options, type, wrong, why = WRONG_VALUES[name]
    good = {"double": "1", "date": "31.12.2024", "decimal(9, 2)": "1", "bool": "ja"}.get(type, "1")
    if "%d/" in str(options):
        good = "31/12/2024"
    source = stored(tmp_path, f"v;s\n{good};x\n{wrong};y\n{good};z\n")
    data_set = DataSet(source=source, columns={"v": type}, csv={"separator": ";", **options})
    with pytest.raises(SourceError, match="not the CSV file that its owner says") as caught:
        rows_of(data_set)
    assert wrong not in str(caught.value)
    assert re.search(why, caught.value.detail), caught.value.detail
    assert "row 3, column 'v'" in caught.value.detail


def test_words_for_bools_are_those_that_the_owner_says(tmp_path):
    source = stored(tmp_path, "a,b\nX,yes\nO,no\n")
    data_set, _, _ = propose(source, "/", csv={"true_words": ["X"], "false_words": ["O"]})
    assert data_set.columns == {"a": "bool", "b": "string"}
    assert rows_of(data_set) == [(True, "yes"), (False, "no")]


def test_decimals_and_integers_are_exact(tmp_path):
    source = stored(tmp_path, "a;b\n9.007.199.254.740.993;12.345.678.901.234.567,89\n-1;(0,01)\n")
    options = {"separator": ";", "decimal": ",", "thousands": ".", "negative": "parentheses"}
    columns = {"a": "int64", "b": "decimal(20, 2)"}
    data_set = DataSet(source=source, columns=columns, csv=options)
    big = decimal.Decimal("12345678901234567.89")
    assert rows_of(data_set) == [(9007199254740993, big), (-1, decimal.Decimal("-0.01"))]


def test_a_byte_that_is_none_of_the_encoding_tells_its_line(tmp_path):
    source = stored(tmp_path, b"a;b\n1;x\n2;\x81\n")
    data_set = DataSet(
        source=source, columns={"a": "int64"}, csv={"separator": ";", "encoding": "cp1252"}
    )
    with pytest.raises(SourceError) as caught:
        rows_of(data_set)
    assert caught.value.detail == "line 3: it has bytes that are not valid cp1252"


def test_what_rows_end_with_is_not_dropped(tmp_path):
    source = stored(tmp_path, "a;b\n1;2;\n3;4;5\n")
    options = {"separator": ";", "trailing_separator": True}
    with pytest.raises(SourceError) as caught:
        rows_of(DataSet(source=source, columns={"a": "int64"}, csv=options))
    assert "a row has more fields than the header" in caught.value.detail


def test_options_are_those_of_csv_files_and_no_reader_knows_them():
    fields = {"columns": {"a": "int64"}, "csv": {"separator": ";"}}
    with pytest.raises(
        ConfigError, match="csv has the options of CSV files, and its source is parquet"
    ):
        DataSet(source="parquet:x.parquet", **fields)
    assert "csv" not in DataSet(source="csv:x.csv", **fields).public()
    for wrong, why in (
        ({"separator": "ab"}, "one ASCII character"),
        ({"encoding": "rot13"}, "not an encoding"),
        ({"dates": "%d.%m"}, "a day, a month and a year"),
        ({"dates": "%Q%d%m%Y"}, "%Q is not a code"),
        ({"seperator": ";"}, "did you mean 'separator'"),
        ({"decimal": ",", "thousands": ","}, "same"),
        ({"missing": [None]}, "csv.missing.0"),
        ({"true_words": ["0"]}, "'0' is a word for true, and one for"),
    ):
        with pytest.raises(ConfigError, match=why):
            DataSet(source="csv:x.csv", columns={"a": "int64"}, csv=wrong)
