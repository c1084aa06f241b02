"""Ways in which offices write a CSV file: each is read right as proposed, or refused."""

from __future__ import annotations

import datetime as dt
import logging
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from csv_data import rows_of, stored
from mplang_data import DataSet
from mplang_data.ext import check_data_set
from mplang_data.schema import propose
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import ConfigError

DAY = dt.date(2024, 1, 31)


class Office(NamedTuple):
    """A file of an office, and what a catalogue says of it that reads it."""

    content: bytes
    options: dict[str, Any]
    columns: dict[str, str]
    rows: list[tuple[Any, ...]]


def office(text, options, columns, *rows, encoding="utf-8"):
    return Office(text.encode(encoding), options, columns, list(rows))


OFFICES = {
    "a program": office(
        "id,pay,day\n1,2.5,2024-01-31\n2,,\n", {},
        {"id": "int64", "pay": "double", "day": "date32[day]"}, (1, 2.5, DAY), (2, None, None),
    ),
    "Excel in German": office(
        "Tag;Kurs;Name\r\n31.01.2024;1.234,50;Zürich\r\n01.02.2024;-4,25;Käse \"neu\"\r\n",
        {"separator": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".",
         "dates": "%d.%m.%Y"},
        {"Tag": "date32[day]", "Kurs": "double", "Name": "string"},
        (DAY, 1234.5, "Zürich"), (dt.date(2024, 2, 1), -4.25, 'Käse "neu"'), encoding="cp1252",
    ),
    "Excel in French": office(
        "\ufeffnom;montant;actif\r\nAmélie;1\u202f234,50;oui\r\nZoé;12\u00a0000,00;non\r\n",
        {"separator": ";", "decimal": ",", "thousands": " ", "true_words": ["oui"],
         "false_words": ["non"]},
        {"nom": "string", "montant": "double", "actif": "bool"},
        ("Amélie", 1234.5, True), ("Zoé", 12000.0, False),
    ),
    "Excel in the United States": office(
        '\ufeffdate,amount,units\r\n1/31/2024,"1,234.50",7\r\n2/1/2024,"(12.25)",8\r\n',
        {"thousands": ",", "negative": "parentheses", "dates": "%m/%d/%Y"},
        {"date": "date32[day]", "amount": "double", "units": "int64"},
        (DAY, 1234.5, 7), (dt.date(2024, 2, 1), -12.25, 8),
    ),
    "Excel in Japanese": office(
        "氏名,入社日,給与\r\n山田 太郎,2024/1/31,\"1,234,000\"\r\nカナ,2024/2/1,500\r\n",
        {"encoding": "cp932", "thousands": ",", "dates": "%Y/%m/%d"},
        {"氏名": "string", "入社日": "date32[day]", "給与": "int64"},
        ("山田 太郎", DAY, 1234000), ("カナ", dt.date(2024, 2, 1), 500), encoding="cp932",
    ),
    "Excel's Unicode text": office(
        "id\tName\r\n1\tŁódź\r\n2\t\"a\tb\"\r\n", {"separator": "\t", "encoding": "utf-16"},
        {"id": "int64", "Name": "string"}, (1, "Łódź"), (2, "a\tb"), encoding="utf-16",
    ),
    "UTF-16 without a mark": office(
        "id;v\n1;2\n3;4\n", {"separator": ";", "encoding": "utf-16-le"},
        {"id": "int64", "v": "int64"}, (1, 2), (3, 4), encoding="utf-16-le",
    ),
    "a mainframe with bars": office(
        "KONTO|SALDO|STAND\n0012|1234.50-|20240131\n0300|7.00|20240201\n",
        {"separator": "|", "negative": "trailing"},
        {"KONTO": "string", "SALDO": "double", "STAND": "int64"},
        ("0012", -1234.5, 20240131), ("0300", 7.0, 20240201),
    ),
    "words for nothing": office(
        "id,age,born,name\n1,NA,31.12.1999,NULL\n2,44,n.a.,Bo\n-,17,-,\n",
        {"missing": ["", "-", "NA", "n.a."], "dates": "%d.%m.%Y"},
        {"id": "int64", "age": "int64", "born": "date32[day]", "name": "string"},
        (1, None, dt.date(1999, 12, 31), "NULL"), (2, 44, None, "Bo"), (None, 17, None, ""),
    ),
    "quotes and lines within fields": office(
        'id,text\r\n"1","he said ""no"", twice"\r\n"2","two\r\n\r\nlines"\r\n"","x"\r\n', {},
        {"id": "int64", "text": "string"},
        (1, 'he said "no", twice'), (2, "two\r\n\r\nlines"), (None, "x"),
    ),
    "lines before the header": office(
        "Umsatz 2024\nerstellt am 1.2.;\n\nid;v\n1;2,5\n2;3,25\n3;4\n",
        {"separator": ";", "skip": 3, "decimal": ","}, {"id": "int64", "v": "double"},
        (1, 2.5), (2, 3.25), (3, 4.0),
    ),
    "Excel's own separator line": office(
        "sep=;\r\nid;v\r\n1;2\r\n", {"separator": ";", "skip": 1}, {"id": "int64", "v": "int64"},
        (1, 2),
    ),
    "comments": office(
        '# of 2024\nid,v\n1,"a\n# b"\n# later, and, more\n2,c\n', {"comment": "#"},
        {"id": "int64", "v": "string"}, (1, "a\n# b"), (2, "c"),
    ),
    "blank lines": office(
        "\r\nid;v\r\n\r\n1;2\r\n\r\n3;4\r\n\r\n", {"separator": ";"}, {"id": "int64", "v": "int64"},
        (1, 2), (3, 4),
    ),
    "separators that end rows": office(
        "id;v\n1;2;\n3;4;\n", {"separator": ";", "trailing_separator": True},
        {"id": "int64", "v": "int64"}, (1, 2), (3, 4),
    ),
    "columns with blanks": office(
        "id , name , born\n 1 , Ann , 2024-01-31\n 2 , Bo , -\n",
        {"trim": True, "missing": ["", "-"]},
        {"id": "int64", "name": "string", "born": "date32[day]"}, (1, "Ann", DAY), (2, "Bo", None),
    ),
    "no header": office(
        "1;Ann;4,5\n2;Bo;5,25\n",
        {"separator": ";", "decimal": ",", "names": ["column_1", "column_2", "column_3"]},
        {"column_1": "int64", "column_2": "string", "column_3": "double"},
        (1, "Ann", 4.5), (2, "Bo", 5.25),
    ),
    "codes": office(
        "plz;iban;id\n01067;DE02120300000000202051;12345678901234567890\n50667;x;1\n",
        {"separator": ";"}, {"plz": "string", "iban": "string", "id": "string"},
        ("01067", "DE02120300000000202051", "12345678901234567890"), ("50667", "x", "1"),
    ),
    "times": office(
        "at,until\n31.01.2024 13:05,1:30\n01.02.2024 00:00,2:00\n",
        {"timestamps": "%d.%m.%Y %H:%M"}, {"at": "timestamp[s]", "until": "string"},
        (dt.datetime(2024, 1, 31, 13, 5), "1:30"), (dt.datetime(2024, 2, 1), "2:00"),
    ),
    "times of a program": office(
        "a,b,c,d\n2024-01-31 13:05:00,2024-01-31T13:05:00Z,13:05:00,2024-01-31 13:05:00.5\n"
        "2024-02-01 00:00:00,2024-01-31T13:05:00+01:00,00:01,\n", {},
        {"a": "timestamp[s]", "b": "timestamp[us, tz=UTC]", "c": "time64[us]",
         "d": "timestamp[us]"},
        (dt.datetime(2024, 1, 31, 13, 5), dt.datetime(2024, 1, 31, 13, 5, tzinfo=dt.UTC),
         dt.time(13, 5), dt.datetime(2024, 1, 31, 13, 5, 0, 500_000)),
        (dt.datetime(2024, 2, 1), dt.datetime(2024, 1, 31, 12, 5, tzinfo=dt.UTC), dt.time(0, 1),
         None),
    ),
    "padded times and bools": office(
        "a ,b ,c \n 13:05:00 , true ,2024-01-31 13:05:00 \n , False, \n", {"trim": True},
        {"a": "time64[us]", "b": "bool", "c": "timestamp[s]"},
        (dt.time(13, 5), True, dt.datetime(2024, 1, 31, 13, 5)), (None, False, None),
    ),
    "English months and half days": office(
        "day,at\n31-Jan-2024,1/31/2024 1:05 PM\n05-Dec-2024,12/5/2024 12:00 AM\n",
        {"dates": "%d-%b-%Y", "timestamps": "%m/%d/%Y %I:%M %p"},
        {"day": "date32[day]", "at": "timestamp[s]"},
        (DAY, dt.datetime(2024, 1, 31, 13, 5)), (dt.date(2024, 12, 5), dt.datetime(2024, 12, 5)),
    ),
    "Swiss and Indian groups": office(
        "a;b\n1'234.50;1\n12'345'678.00;2\n", {"separator": ";", "thousands": "'"},
        {"a": "double", "b": "int64"}, (1234.5, 1), (12345678.0, 2),
    ),
    "titles that Excel has padded": office(
        "Umsatz;;;\r\n;;;\r\nid;v;w;x\r\n1;2;;\r\n3;4;;5\r\n", {"separator": ";", "skip": 2},
        {"id": "int64", "v": "int64", "x": "int64"}, (1, 2, None), (3, 4, 5),
    ),
    "rows that end with separators and gaps": office(
        "id;v\n1;;\n3;4;\n", {"separator": ";", "trailing_separator": True},
        {"id": "int64", "v": "int64"}, (1, None), (3, 4),
    ),
    "single quotes": office(
        "'id','name'\n'1','O''Neil, Bo'\n'2','Cy'\n", {"quote": "'"},
        {"id": "int64", "name": "string"}, (1, "O'Neil, Bo"), (2, "Cy"),
    ),
    "one column": office("id\n1\n2\n", {}, {"id": "int64"}, (1,), (2,)),
    "dates as in another column": office(
        "from,to\n01/02/2024,31/01/2024\n02/02/2024,01/12/2024\n", {"dates": "%d/%m/%Y"},
        {"from": "date32[day]", "to": "date32[day]"},
        (dt.date(2024, 2, 1), DAY), (dt.date(2024, 2, 2), dt.date(2024, 12, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OFFICES)
def test_a_file_is_read_right_as_is_proposed(tmp_path, name):
    written = OFFICES[name]
    data_set, reasons, doubts = propose(stored(tmp_path, written.content), "/")
    options = data_set.arguments.get("options", {})
    assert (options, data_set.columns) == (written.options, written.columns)
    assert rows_of(data_set) == written.rows
    for option in written.options:  # each is said
        assert any(sentence.startswith(option) for sentence in (*reasons, *doubts))


AMBIGUOUS = {
    "a dot": (
        "id;v\n1;1.234\n2;5.678\n",
        "v",
        "may be 1.234 or 1234; say {decimal: '.'} or {decimal: ','",
        {"decimal": ",", "thousands": "."},
        "int64",
        1234,
    ),
    "a comma": (
        'id,v\n1,"1,234"\n',
        "v",
        "may be 1.234 or 1234",
        {"decimal": ","},
        "double",
        1.234,
    ),
    "a day or a month": (
        "id,v\n1,01/02/2024\n",
        "v",
        "as %d/%m/%Y or %m/%d/%Y; say which",
        {"dates": "%m/%d/%Y"},
        "date32[day]",
        dt.date(2024, 1, 2),
    ),
    "a time, too": (
        "id,v\n1,01/02/2024 10:00\n",
        "v",
        "%d/%m/%Y %H:%M or %m/%d/%Y %H:%M",
        {"timestamps": {"v": "%d/%m/%Y %H:%M"}},
        "timestamp[s]",
        dt.datetime(2024, 2, 1, 10),
    ),
    "a word": (
        "id,v\n1,NA\n2,DE\n",
        "v",
        "say missing, and missing_strings: true",
        {"missing": ["NA"], "missing_strings": True},
        "string",
        None,
    ),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_said_and_is_a_string_until_its_owner_says(tmp_path, name):
    content, column, doubt, said, type, value = AMBIGUOUS[name]
    source = stored(tmp_path, content)
    data_set, _, doubts = propose(source, "/")
    assert data_set.columns[column] == "string"
    (sentence,) = doubts
    assert f"column '{column}' is of strings" in sentence
    assert doubt in sentence
    data_set, _, doubts = propose(source, "/", csv=said)
    assert (data_set.columns[column], doubts) == (type, [])
    assert rows_of(data_set)[0] == (1, value)


SAID = {
    "a fraction of thousandths": ("w\n1.234\n5.678\n", "read as a fraction, not as 1234"),
    "Western bytes": (
        "n;v\nZürich;1\n".encode("cp1252"),
        "bytes do not tell the encoding.*'Zürich'",
    ),
    "percent": (
        "a;share\n1;12,5 %\n2;3 %\n",
        "'share' is of strings: its numbers have percent signs",
    ),
    "euros": ("a;pay\n1;€ 1.234,50\n", "'pay' is of strings: its numbers have currencies"),
    "years of two digits": ("a,b\n31.01.24,1\n", "years of two digits are 1969 to 2068"),
    "two ways": (
        "a;b;c\n4,25;4.5;1\n2,5;5.5;2\n",
        "are written in another way than those of other",
    ),
    "empty rows": ("a;b\n1;2\n;\n", "1 rows have no values"),
    "no values": ("a,b\n1,NA\n", "'b' has no values, so no type"),
    "two columns of a name": ("a,b,b\n1,2,3\n", "2 columns are called 'b'"),
    "no name": (",a\n0,1\n", "1 columns have no name"),
    "years as names": (
        "region;2022;2023\nx;5;6\ny;7;8\n",
        "first line has numbers, and is taken for names",
    ),
    "one row below titles": (
        "Report\nof 2024\nx\na;b;c\n",
        "one column: 25% of its lines have 3 fields by ';'; if that is",
    ),
    "codes with an E": ("code,n\n12E4,1.5\n13E5,2\n", "'code' is of strings: 12E4 is a code"),
    "groups beyond int64": (
        "a;b\n1;9.999.999.999.999.999.999\n",
        "'b' is of strings: it has codes",
    ),
    "telephones": ("a;b\n1;612 345 678\n2;655 111 222\n", "'b'.* as long, so they may be codes"),
    "letters for bools": ("a,b\n1,Y\n2,N\n", "offer it as a string if it is of no bools"),
    "dates without signs": ("a,b\n1,20240131\n", "'b' is int64, and may be of dates: say dates"),
    "formulas of Excel": ('a;b\n1;="0012"\n', "'b' is of strings: .* the form of Excel's formulas"),
    "dashes": ("a;b\n1;\u22125\n2;4\n", "'b' is of strings: .* minus signs that are dashes"),
    "digits": ("a\n1.23456789012345678901\n", "does not hold all digits"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_may_be_otherwise_is_said(tmp_path, name):
    content, said = SAID[name]
    _, _, doubts = propose(stored(tmp_path, content), "/")
    assert any(re.search(said, sentence) for sentence in doubts), doubts


REFUSED = {
    "Russian bytes": ("a;b\nМосква;1\n".encode("cp1251"), "say encoding, such as cp1250, cp1251"),
    "a header alone": ("id;v\n", "no column of it has values, and so a type: give its columns"),
    "names that are none": ("a,A\n1,2\n", "two columns are called 'A'"),
    "one name of all columns": ("a,a\n1,2\n", "2 columns are called 'a'"),
    "no rows": ("\n\n", "no header and no rows"),
    "a short row": ("a;b\n1;2\n3\n4;5\n", "row 3 has 1 fields, and the header 2"),
    "names without one": (
        "a;b;c\nx;1;2;3\ny;4;5;6\n",
        "its header has 3 names, and rows have 4 fields",
    ),
    "a quote without end": ('a;b\n1;"2\n3;4\n', "unterminated quoted field"),
    "quotes behind backslashes": (
        'id,s\n1,"a \\"b\\" c"\n',
        "line 1 of its rows: a quote within a quoted field is not doubled",
    ),
    "quotes that are not doubled": ('id,s\n1,"he said "no" twice"\n', "is not doubled"),
    "blank lines of one column": ("a\n1\n\n3\n", "say blank_lines: skip, or blank_lines: missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_written_in_no_way_is_refused_with_the_reason(tmp_path, name):
    content, why = REFUSED[name]
    with pytest.raises(ConfigError, match=why):
        propose(stored(tmp_path, content), "/")


def test_an_owner_says_what_is_not_found_out(tmp_path):
    source = stored(tmp_path, "a;b\nМосква;1\n".encode("cp1251"))
    assert rows_of(propose(source, "/", csv={"encoding": "cp1251"}).data_set) == [("Москва", 1)]
    source = stored(tmp_path, "a\n1\n\n3\n")
    for said, rows in (("skip", [(1,), (3,)]), ("missing", [(1,), (None,), (3,)])):
        assert rows_of(propose(source, "/", csv={"blank_lines": said}).data_set) == rows
    with pytest.raises(ConfigError, match="field 'decimal': .*got ';'"):
        propose(source, "/", csv={"decimal": ";"})


def test_the_command_writes_what_a_worker_reads(tmp_path, monkeypatch):
    """The confined process finds the options; another one reads by them."""
    from mplang_cli.cli import app

    monkeypatch.chdir(tmp_path)
    written = OFFICES["Excel in Japanese"]
    stored(tmp_path, written.content)
    done = CliRunner().invoke(app, ["data", "schema", "x.csv"])
    assert done.exit_code == 0, done.stderr
    assert "found: separator ',': 100% of its lines have 3 fields" in done.stderr
    assert "not certain: encoding cp932" in done.stderr
    fields = yaml.safe_load(done.stdout)["name-it"]
    assert fields["csv"] == written.options
    assert fields["source"] == "csv:x.csv"  # as a worker's file in this folder has it
    data_set = DataSet(**{**fields, "source": f"csv:{tmp_path / 'x.csv'}"})
    assert check_data_set(data_set) == len(written.rows)
    with mp.Simulator(mp.ClusterSpec([{"name": "a"}]), data={"a": {"d": fields}}) as sim:
        rows = mp.fetch(sim, mp.evaluate(sim, lambda: mp.dataset("a", "d"))).to_pylist()
    assert [tuple(row.values()) for row in rows] == written.rows


def test_the_command_takes_what_is_known(tmp_path, monkeypatch):
    from mplang_cli.cli import app

    monkeypatch.chdir(tmp_path)
    stored(tmp_path, "id,v\n1,01/02/2024\n")
    command = ["data", "schema", "x.csv", "--csv"]
    done = CliRunner().invoke(app, [*command, "{dates: '%d/%m/%Y'}"])
    assert yaml.safe_load(done.stdout)["name-it"]["columns"]["v"] == "date32[day]"
    done = CliRunner().invoke(app, [*command, "dates"])
    assert "--csv has fields, such as" in str(done.exception)


def test_a_simulator_warns_of_what_is_not_certain(tmp_path, caplog):
    stored(tmp_path, "id,v\n1,01/02/2024\n")
    with (
        caplog.at_level(logging.WARNING),
        mp.Simulator(mp.ClusterSpec([{"name": "a"}]), data={"a": {"d": tmp_path / "x.csv"}}),
    ):
        assert "%d/%m/%Y or %m/%d/%Y; say which" in caplog.text


def test_the_cookbook_shows_what_is_found(tmp_path, monkeypatch):
    page = Path(__file__).parents[3] / "docs/cookbook/own-csv.md"
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search("```python\n(.*?)```", text, re.DOTALL)[1])
    data_set, reasons, doubts = propose("csv:konten.csv", ".")
    shown = [f"found: {each}" for each in reasons] + [f"not certain: {each}" for each in doubts]
    written = re.search("```text\n(.*?)```", text, re.DOTALL)[1]
    assert written.replace("\n  ", " ").splitlines() == shown  # lines are wrapped there
    catalogue = yaml.safe_load(re.search('"""(\nname: bank.*?)"""', text, re.DOTALL)[1])
    assert catalogue["data"]["accounts"]["csv"] == data_set.arguments["options"]
