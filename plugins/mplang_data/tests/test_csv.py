"""CSV files as offices write them: each row once, and errors that say what is wrong, and where."""

from __future__ import annotations

import codecs
import json
import math

import pytest
from mplang_data.schema import schema_of
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import PartyError

BANK = mp.ClusterSpec([{"name": "bank"}])
NUMBERS = {"id": "int64", "v": "int64"}


def read(folder, content, columns):
    content = content if isinstance(content, bytes) else content.encode()
    (folder / "x.csv").write_bytes(content)
    data = {"bank": {"d": {"source": f"csv:{folder}/x.csv", "columns": columns}}}
    with mp.Simulator(BANK, data=data) as sim:
        return mp.fetch(sim, mp.evaluate(sim, lambda: mp.dataset("bank", "d"))).to_pylist()


ROWS = {
    "blank lines": "id,v\n1,2\n\n3,4\n\n",
    "blank lines first": "\n\nid,v\n1,2\n3,4\n",
    "blank lines of Windows": "id,v\r\n1,2\r\n\r\n3,4\r\n\r\n",
    "no newline at the end": "id,v\n1,2\n3,4",
    "a byte order mark": codecs.BOM_UTF8 + b"id,v\n1,2\n3,4\n",
    "lines of an old Mac": "id,v\r1,2\r3,4\r",
    "quotes": '"id","v"\n"1","2"\n3,"4"\n',
    "other columns": 'a,id,"b\nc",v\n9,1,x,2\n,3,"y,\n\nz",4\n',
}


@pytest.mark.parametrize("content", ROWS)
def test_each_row_is_read_once(tmp_path, content):
    assert read(tmp_path, ROWS[content], NUMBERS) == [{"id": 1, "v": 2}, {"id": 3, "v": 4}]


def test_a_blank_line_in_quotes_stays_and_empty_fields_are_null(tmp_path):
    found = read(tmp_path, 'id,v\n1,"a\n\nb"\n,\n', {"id": "int64", "v": "string"})
    assert found == [{"id": 1, "v": "a\n\nb"}, {"id": None, "v": ""}]


@pytest.mark.parametrize("content", ["id\n1\n\n3\n", "\nid\n1\n3\n\n", "id\r\n1\r\n\r\n"])
def test_blank_lines_of_one_column_are_refused_since_programs_differ(tmp_path, content):
    with pytest.raises(PartyError, match="one column and blank lines, which are nulls for some"):
        read(tmp_path, content, {"id": "int64"})


def test_one_column_without_blank_lines(tmp_path):
    assert read(tmp_path, "\n\nid\n1\n3\n", {"id": "int64"}) == [{"id": 1}, {"id": 3}]


WRONG = {
    "semicolons": ("id;v\n1;2\n", NUMBERS, 'separated by semicolons.*separator: ";"'),
    "tabs": ("id\tv\n1\t2\n", NUMBERS, r'separated by tabs.*separator: "\\t"'),
    "UTF-16": ("id,v\n1,2\n".encode("utf-16"), NUMBERS, "UTF-16.*encoding: utf-16"),
    "a comment first": ("# of 2024\nid,v\n1,2\n", NUMBERS, "preceded by 1 line.*skip: 1"),
    "the separator first": ("sep=;\nid;v\n1;2\n", NUMBERS, "separated by semicolons"),
    "blanks": ("id, v\n1, 2\n", NUMBERS, "blanks around the names.*trim: true"),
    "a comment later": ("id,v\n1,2\n# x\n", NUMBERS, "row 3 has 1 fields, and the header 2"),
    "a short row": ("id,v\n1,2\n3\n", NUMBERS, "row 3 has 1 fields, and the header 2"),
    "a long row": ("id,v\n1,2,7\n", NUMBERS, "row 2 has 3 fields, and the header 2"),
    "a decimal comma": (
        'id,v\n1,"4.5"\n2,"4,25"\n', {"id": "int64", "v": "float64"},
        "row 3, column 'v': it is not a valid double; it has a decimal comma .decimal: ','",
    ),
    "a word for nothing": ("id,v\n1,2\n2,NA\n", NUMBERS, "row 3, column 'v': .*missing"),
    "a fraction": ("id,v\n1,2.5\n", NUMBERS, "column 'v': it is not a valid int64; it has a frac"),
    "too large": ("id,v\n1,300\n", {"v": "int8"}, "row 2, column 'v': .*beyond the range"),
    "a date": ("id,v\n1,31.12.2024\n", {"v": "date"}, "row 2, column 'v': .*dates: '%d.%m.%Y'"),
    "a bool": ("id,v\n1,yes\n", {"v": "bool"}, "row 2, column 'v': .*true_words"),
    "no zone": ("id,v\n1,2024-01-01T00:00:00\n", {"v": "timestamp[us, tz=UTC]"}, "has a zone"),
    "nanoseconds": ("id,v\n1,2300-01-01\n", {"v": "timestamp[ns]"}, "row 2, column 'v'"),
    "digits": ("id,v\n1,1.239\n", {"v": "decimal(10, 2)"}, "column 'v': .*more digits"),
    "Latin": ("id,v\n1,Zürich\n".encode("latin-1"), {"v": "string"}, "row 2.*encoding: cp1252"),
    "Latin names": ("id,v,größe\n".encode("latin-1"), {"w": "string"}, "header .*encoding: cp1252"),
    "beyond doubles": ("id,v\n1,1e400\n", {"v": "float64"}, "column 'v' has .*range of double"),
    "beyond floats": ("id,v\n1,-1e300\n", {"v": "float32"}, "column 'v' has .*range of float"),
    "a line of a file": ("\n\nid,v\n1,2\nx,3\n", NUMBERS, "row 5, column 'id'"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_with_row_column_and_option(tmp_path, wrong):
    content, columns, told = WRONG[wrong]
    with pytest.raises(PartyError, match=told) as caught:
        read(tmp_path, content, columns)
    for damaging in ("damaged", "can run mplang data check"):
        assert damaging not in str(caught.value)


def test_infinities_that_are_written_are_numbers(tmp_path):
    found = read(tmp_path, "id,v\n1,inf\n2,-Infinity\n3,\n", {"v": "float64"})
    assert [row["v"] for row in found] == [math.inf, -math.inf, None]


def test_an_owner_is_told_the_row_by_the_command(tmp_path):
    from mplang_cli.cli import app

    (tmp_path / "x.csv").write_text("id,v\n1,2\n3,x\n")
    data = {"d": {"source": "csv:x.csv", "columns": NUMBERS}}
    (tmp_path / "w.yaml").write_text(json.dumps({"name": "bank", "data": data}))
    done = CliRunner().invoke(app, ["data", "check", "-c", str(tmp_path / "w.yaml")])
    assert done.exit_code == 1
    assert "row 3, column 'v': it is not a valid int64" in done.stdout
    assert "invalid value 'x'" in done.stdout  # it is the owner's own


def test_codes_with_leading_zeros_are_no_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("zip,n\n501,0\n00501,10\n")
    columns = schema_of("csv:x.csv", str(tmp_path)).columns
    assert columns == {"zip": "string", "n": "int64"}
