"""Bad catalogues, sources and programs: an error for the one whose fault it is, without data."""

from __future__ import annotations

import contextlib
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from mplang_data import DataSet, Description, SourceError
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from mplang_http import LocalCluster
from mplang_tables import to_padded, to_tensor
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.data_sets import check_data
from people import COLUMNS, PEOPLE
from pyarrow import csv
from test_datasets import on_simulator, on_workers
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import AdmissionError, ConfigError, PartyError, TraceError
from mplang_core.ir.compressed_text import pack
from mplang_core.printable import printable

HOSTS = pytest.mark.parametrize("host", [on_simulator, on_workers])


def bank(source, **fields):
    fields = {"columns": COLUMNS, "match": ["id"], "readers": ["local"], **fields}
    return {"bank": {"people": {"source": source, **fields}}}


@contextlib.contextmanager
def fails(host, told):
    """A coordinator is told where it failed, on workers not why: that is in the owner's log."""
    hidden = "the reason is in that party's log"
    with pytest.raises(PartyError, match=told if host is on_simulator else hidden) as caught:
        yield caught
    assert caught.value.location is not None


def read(columns=None, **options):
    return lambda: mp.dataset("bank", "people", columns, **options)


# -- the owner's fault: told when the worker starts, and by `mplang data check`


def cut(folder):
    data = (folder / "people.parquet").read_bytes()
    (folder / "people.parquet").write_bytes(data[: len(data) // 2])


def empty(folder):
    (folder / "people.parquet").write_bytes(b"")


def link_out(folder):
    os.rename(folder / "people.parquet", folder.parent / "elsewhere.parquet")
    os.symlink(folder.parent / "elsewhere.parquet", folder / "people.parquet")


def pipe(folder):
    os.remove(folder / "people.parquet")
    os.mkfifo(folder / "people.parquet")


def other_type(folder):
    pq.write_table(PEOPLE.cast(_with(PEOPLE.schema, "age", pa.int32())), folder / "people.parquet")


def no_column(folder):
    pq.write_table(PEOPLE.drop_columns(["pay"]), folder / "people.parquet")


def no_match(folder):
    pq.write_table(PEOPLE.drop_columns(["id"]), folder / "people.parquet")


def _with(schema, name, kind):
    return schema.set(schema.get_field_index(name), pa.field(name, kind))


WRONG = {
    cut: "damaged",
    empty: "empty",
    link_out: "symbolic link leads out of its folder",
    pipe: "not a regular file",
    other_type: "column 'age' is int32 there, and int64 in the catalogue",
    no_column: "no column 'pay'",
    no_match: "no column 'id', which may be matched on",
    lambda folder: os.remove(folder / "people.parquet"): "No such file",
}


@pytest.mark.parametrize("damage", WRONG)
def test_a_source_that_is_wrong_is_told_when_a_worker_starts(folder, damage):
    damage(folder)
    config = WorkerConfig(name="bank", data=bank(f"parquet:{folder}/people.parquet")["bank"])
    with pytest.raises(ConfigError, match=f"field 'data.people': .*{WRONG[damage]}"):
        check_data(config)


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "postgres://reader:s3cret@db/bank#t", "columns": COLUMNS},
        {"source": "postgresql://reader:s3cret@db/bank", "columns": COLUMNS},
        {"source": "postgresql://reader:s3cret@db/bank#t"},
        {"source": ["postgresql://reader:s3cret@db/bank#t"], "columns": COLUMNS},
    ],
)
def test_a_password_in_a_wrong_catalogue_is_not_told(fields):
    for data in ({"people": fields}, {"people": [fields]}):
        with pytest.raises(ConfigError) as caught:
            WorkerConfig(name="bank", data=data)
        assert "s3cret" not in str(caught.value)


def test_a_worker_whose_source_is_wrong_does_not_start(folder):
    cut(folder)
    with (
        pytest.raises(ConfigError, match="field 'data.people': .*damaged"),
        on_workers(bank(f"parquet:{folder}/people.parquet")),
    ):
        pass


@pytest.mark.parametrize(
    ("damage", "host"),
    [
        *((each, on_simulator) for each in WRONG if each is not no_match),
        pytest.param(cut, on_workers, marks=pytest.mark.long("starts two workers")),
    ],
)
def test_a_source_that_changes_later_is_refused_when_it_is_read(folder, damage, host, capfd):
    with host(bank(f"parquet:{folder}/people.parquet")) as made:
        # replaced, not changed: who maps the old file keeps it
        (folder / "new.parquet").write_bytes((folder / "people.parquet").read_bytes())
        os.replace(folder / "new.parquet", folder / "people.parquet")
        damage(folder)
        with fails(host, WRONG[damage]) as caught:
            mp.evaluate(made, read())
        assert str(folder) not in str(caught.value)
    assert host is on_simulator or WRONG[damage] in capfd.readouterr().err


@HOSTS
@pytest.mark.parametrize(("rows", "told"), [(1999, "1999 rows"), ({"at_most": 1999}, "more rows")])
def test_other_rows_than_published_are_refused(folder, host, rows, told):
    data = bank(f"csv:{folder}/people.csv", rows=2000)
    with host(data) as made:
        with open(folder / "people.csv", "a") as file:
            file.write("p,1,1.0,f\n")
        with fails(host, "the 2000 rows that are published"):
            mp.evaluate(made, read())
    wrong = DataSet(**bank(f"csv:{folder}/people.csv", rows=rows)["bank"]["people"])
    with pytest.raises(SourceError, match=told):
        check_data_set(wrong)


def test_a_line_of_csv_with_other_columns_is_told_without_its_content(folder):
    lines = (folder / "people.csv").read_text().splitlines()
    lines[1000] = "p999,secret,7,8,9"
    (folder / "people.csv").write_text("\n".join(lines))
    with on_simulator(bank(f"csv:{folder}/people.csv")) as made:
        with pytest.raises(PartyError, match="row 1001 has 5 fields") as caught:
            mp.evaluate(made, read())
        assert "secret" not in str(caught.value)


def test_a_parquet_file_that_lies_about_its_rows_is_refused(folder):
    data = bytearray((folder / "people.parquet").read_bytes())
    lie(data, 2000, 2016)
    (folder / "people.parquet").write_bytes(data)
    wrong = DataSet(**bank(f"parquet:{folder}/people.parquet")["bank"]["people"])
    with pytest.raises(SourceError, match="rows that its head says"):
        check_data_set(wrong)
    with on_simulator(bank(f"parquet:{folder}/people.parquet")) as made:
        tensor = mp.device("PB")(to_tensor)
        with pytest.raises(PartyError, match="does not have the 2016 rows"):
            mp.evaluate(made, lambda: tensor(mp.dataset("bank", "people", ["age"]), rows=2016))


def test_a_parquet_file_that_is_damaged_where_it_is_read_is_told_by_its_name(tmp_path, caplog):
    column = np.random.default_rng(0).integers(0, 1 << 40, 50_000)
    pq.write_table(pa.table({"a": column}), tmp_path / "a.parquet", use_dictionary=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:60] = bytes(56)  # the head of the first page
    (tmp_path / "a.parquet").write_bytes(data)
    source = bank(f"parquet:{tmp_path}/a.parquet", columns={"a": "int64"}, match=[])
    programs = {
        "ibis.run": lambda t: mp.device("PB")(lambda t: t.agg(s=t.a.sum()))(t),
        "data.read": lambda t: mp.device("PB")(to_tensor)(t, rows=50_000),
    }
    with on_simulator(source) as made:
        for op, use in programs.items():
            with pytest.raises(PartyError, match=f"in {op} at .*'people' is not .*: it is damaged"):
                mp.evaluate(made, lambda use=use: use(read()()))
            assert "'people' does not match what is published: it is damaged" in caplog.text
            caplog.clear()
    with pytest.raises(SourceError, match="damaged"):
        check_data_set(read_data_sets(source["bank"], "/")["people"])


def lie(data, old, new):
    """Change the number of rows in the footer of a Parquet file: varints in zigzag."""
    before, after = (bytes([2 * n & 127 | 128, 2 * n >> 7]) for n in (old, new))
    size = int.from_bytes(data[-8:-4], "little")
    start = data.index(before, len(data) - 8 - size)
    data[start : start + 2] = after


# -- the program's fault


@HOSTS
def test_columns_that_are_not_offered_cannot_be_read(folder, host):
    with host(bank(f"parquet:{folder}/people.parquet")) as made:
        for columns, told in (
            (["id"], "may be matched on, and is not read"),
            (["zip"], "offers no"),
        ):
            with pytest.raises(TraceError, match=f"test_bad_data.py.*{told}"):
                mp.evaluate(made, read(columns))
        kinds = {"zip": "string"}
        with pytest.raises(PartyError, match="offers no") as caught:
            mp.evaluate(made, read(type=kinds))
        assert isinstance(caught.value.__cause__, AdmissionError)
        if host is on_workers:  # a simulator has no owners
            with pytest.raises(PartyError, match="offered for matching only") as caught:
                mp.evaluate(made, read(type={"id": "string"}))
            assert isinstance(caught.value.__cause__, AdmissionError)
        with pytest.raises(PartyError, match="column 'age' is int64, the program says string"):
            mp.evaluate(made, read(type={"age": "string"}))
        with pytest.raises(PartyError, match="the program says f64"):
            mp.evaluate(made, read(type=mp.TensorType("f64", (2000, 3))))


@HOSTS
def test_sql_cannot_name_a_column_that_is_not_read(folder, host):
    taken, gives = mp.TableType((("age", "int64"),)), mp.TableType((("id", "string"),))
    attrs = {"names": ("t",), "gives": gives, "ibis": "12.0.0"}
    attrs |= {"code": pack('SELECT "id" FROM "t"')}
    sql = mp.PFunction("ibis.run", (taken,), (gives,), attrs)

    def program():
        return mp.peval(sql, [read(["age"])()], 1)[0]

    with (
        host(bank(f"parquet:{folder}/people.parquet")) as made,
        pytest.raises(PartyError, match='"id" not found'),
    ):
        mp.evaluate(made, program)


def test_who_is_no_reader_is_told_the_same_as_of_what_does_not_exist(folder):
    data = bank(f"parquet:{folder}/people.parquet", readers=["somebody"])
    with on_workers(data) as made:
        assert made.catalogue == {"shop": {}, "bank": {}}
        texts = []
        for name in ("people", "nothing"):
            with pytest.raises(TraceError, match="you may read none"):
                mp.evaluate(made, lambda name=name: mp.dataset("bank", name))
            with pytest.raises(PartyError, match="that you may read") as caught:
                mp.evaluate(made, lambda name=name: mp.dataset("bank", name, type={"a": "int64"}))
            assert caught.value.code == "A002"
            texts.append(str(caught.value).replace(name, "NAME"))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["../people", "/etc/passwd", "a/b", "..", "", "a\0b", "x" * 80, 7])
def test_a_program_names_no_path(name):
    with (
        on_simulator({"bank": {"people": PEOPLE}}) as made,
        pytest.raises(TraceError, match="not a name of a data set"),
    ):
        mp.evaluate(made, lambda: mp.dataset("bank", name))
    with pytest.raises(ConfigError, match="not a name of a data set"):
        read_data_sets({name: bank("csv:people.csv")["bank"]["people"]}, "/")


@HOSTS
def test_nulls_do_not_become_numbers(tmp_path, host):
    pq.write_table(pa.table({"age": pa.array([1, None, 3])}), tmp_path / "a.parquet")
    data = bank(f"parquet:{tmp_path}/a.parquet", columns={"age": "int64"}, match=[])
    with host(data) as made:
        for op in (to_tensor, to_padded):
            with fails(host, "column 'age' has nulls"):
                mp.evaluate(made, lambda op=op: mp.device("PB")(op)(read()(), rows=3))


def test_rows_beyond_the_bound_of_a_tensor(folder):
    with on_simulator(bank(f"parquet:{folder}/people.parquet")) as made:
        for op, told in ((to_padded, "more than the 1999"), (to_tensor, "not have the 1999")):
            with pytest.raises(PartyError, match=told):
                mp.evaluate(made, lambda op=op: mp.device("PB")(op)(read(["age"])(), rows=1999))


# -- wrong configurations


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"columns": {}}, "it needs columns: by name and type"),
        ({"array": "f64[3]"}, "it needs columns: by name and type"),
        ({"columns": {"a": "int65"}}, "column 'a' is of the type 'int65'"),
        ({"columns": {"id": "string"}}, "DataSet: id may be matched on, and so cannot be read"),
        ({"rows": -1}, "greater than or equal to 0"),
        ({"rows": True}, "valid integer"),
        ({"rows": 10**40}, "less than or equal"),
        ({"unit": "zip"}, "the unit 'zip' is a column that is offered or matched on"),
        ({"unit": "id"}, "the unit 'id' is in match, so no program can read it"),
        ({"rows": {"at_most": -1}}, "greater than or equal to 0"),
        ({"rows": {"at_leat": 1}}, "at_leat"),
        ({"source": "people.csv"}, "a kind and a place"),
        ({"source": "xls:people.xls"}, "no kind of source 'xls'"),
        ({"reader": ["analyst"]}, "reader"),
    ],
)
def test_a_wrong_field_of_a_data_set_is_named(fields, told):
    given = {**bank("csv:people.csv")["bank"]["people"], **fields}
    with pytest.raises(ConfigError, match=f"field 'data.people'(.|\n)*{told}"):
        read_data_sets({"people": given}, "/")
    with pytest.raises(ConfigError, match=told):
        on_simulator({"bank": {"people": given}}).__enter__()


@pytest.mark.parametrize("described", ["people.csv", None, ["csv:people.csv"], 7])
def test_a_data_set_without_fields_is_named(described):
    told = "field 'data.people': expected its fields, as {'source': 'csv:people.csv'"
    with pytest.raises(ConfigError, match=told):
        read_data_sets({"people": described}, "/")
    with pytest.raises(ConfigError, match=told):
        LocalCluster(["bank"], data={"bank": {"people": described}})


@pytest.mark.parametrize("what", ["data", "gates", "controls"])
def test_settings_of_a_worker_that_there_is_not_are_told(what):
    """They were left out, and the worker of that name misspelt ran without them."""
    with pytest.raises(ConfigError, match=f"{what} names 'bnk'; the parties are bank, shop"):
        LocalCluster(["bank", "shop"], **{what: {"bnk": {}}})


def test_a_frame_in_place_of_fields_is_not_printed():
    frame = pd.DataFrame({"debt": [8675309]})
    with pytest.raises(ConfigError, match="got a DataFrame") as error:
        read_data_sets({"people": frame}, "/")
    assert "8675309" not in str(error.value)


def test_places_are_relative_to_the_file_that_names_them(folder, tmp_path_factory):
    config = folder / "worker.yaml"
    config.write_text(
        "name: bank\ndata:\n  people:\n    source: csv:people.csv\n    columns: {age: int64}\n"
    )
    from mplang_worker.base.config import WorkerConfig

    made = read_data_sets(WorkerConfig.from_yaml(config).data, "/")
    assert made["people"].where == str(folder / "people.csv")


@pytest.mark.parametrize(
    "data", [[], {"bank": 7}, {"bank": {"people": {"columns": 7}}}, {"b": [1]}]
)
def test_a_malformed_catalogue_is_refused(data):
    with pytest.raises(ConfigError):
        mp.catalogue(data).__enter__()


def test_the_description_has_no_place_and_no_readers(folder):
    made = read_data_sets(bank("csv:people.csv", unit="age")["bank"], str(folder))["people"]
    assert made.description == Description(columns=COLUMNS, match=("id",), unit="age")
    assert "source" not in made.public()
    assert "readers" not in made.public()


# -- the command


def test_the_command_checks_each_row(folder, monkeypatch):
    from mplang_cli.cli import app

    config = folder / "worker.yaml"
    people = {**bank("csv:people.csv")["bank"]["people"], "rows": 2000, "ranges": {"age": [0, 90]}}
    monkeypatch.setenv("COLUMNS", "200")
    config.write_text(json.dumps({"name": "bank", "data": {"people": people}}))

    def run(*args):
        return CliRunner().invoke(app, ["data", *args])

    assert json.loads(run("check", "-c", str(config), "--json").stdout) == {
        "people": {"rows": 2000, "error": None}
    }
    monkeypatch.setenv("FORCE_COLOR", "1")  # as notebooks and CI do: a pipe gets no wheel
    forced = run("check", "-c", str(config)).stdout
    assert "people: " in forced
    assert "reading" not in forced
    monkeypatch.delenv("FORCE_COLOR")
    assert "people: 2000 rows" in run("check", "-c", str(config)).stdout
    listed = run("list", "-c", str(config)).stdout
    assert "age: int64 in [0, 90], pay: double, sex: string" in listed
    assert "csv" not in listed
    lines = (folder / "people.csv").read_text().splitlines()
    lines[1000] = "p999,7,8,9,10"
    (folder / "people.csv").write_text("\n".join(lines))
    done = run("check", "-c", str(config))
    assert done.exit_code == 1
    assert "Expected 4 columns, got 5" in done.stdout  # its owner sees more than a coordinator
    done = run("schema", "--source", f"parquet:{folder}/people.parquet")
    assert "pay: double" in done.stdout


HIDDEN = "pay\u05d0\u202e\u3164\x1b[2J"
"""What a vendor may write that reorders, hides or clears what its reader sees."""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_a_vendor_wrote_is_escaped_for_who_looks_at_it(tmp_path, kind):
    from mplang_cli.cli import app

    def shown(*args):
        text = CliRunner().invoke(app, ["data", *args]).stdout
        assert printable(text, keep="\n") == text
        return text

    table, place = pa.table({HIDDEN: [1, 2]}), tmp_path / f"a.{kind}"
    (csv.write_csv if kind == "csv" else pq.write_table)(table, place)
    fields = yaml.safe_load(shown("schema", "--source", f"{kind}:{place}"))
    assert list(fields["name-it"]["columns"]) == [HIDDEN]
    if kind == "csv":
        with open(place, "a") as file:
            file.write(f"3,{HIDDEN}\n")
    columns = {HIDDEN: "int64"} if kind == "csv" else {"id": "int64"}
    data = {"a": {"source": f"{kind}:{place}", "columns": columns}}
    (tmp_path / "worker.yaml").write_text(json.dumps({"name": "bank", "data": data}))
    assert "a: it " in shown("check", "-c", str(tmp_path / "worker.yaml"))


def test_arrays_of_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(SourceError, match="no NPY file of numbers"):
        check_data_set(DataSet(source=f"npy:{tmp_path}/a.npy", array="f64[1]"))


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04" + bytes(40),
        b"\x93NUMPY\x01\x00\x0a\x00(((((3,    ",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
        b"(1000000000000000,), }".ljust(127)
        + b"\n",
        b"",
    ],
)
def test_an_npy_file_that_is_none_is_refused_before_memory_is_taken(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    for kind in ("f64[1]", "f64[1000000000000000]"):
        with pytest.raises(SourceError):
            check_data_set(DataSet(source=f"npy:{tmp_path}/a.npy", array=kind))


# -- CSV


def rows_of_csv(tmp_path, text, **columns):
    (tmp_path / "a.csv").write_text(text)
    data = {"bank": {"people": {"source": f"csv:{tmp_path}/a.csv", "columns": columns}}}
    with on_simulator(data) as made:
        return mp.fetch(made, mp.evaluate(made, read())).to_pylist()


def test_only_an_empty_field_of_csv_is_null(tmp_path):
    found = rows_of_csv(tmp_path, "a,s\n1,\n,NA\n", a="int64", s="string")
    assert found == [{"a": 1, "s": ""}, {"a": None, "s": "NA"}]
    (nan,) = rows_of_csv(tmp_path, "f\nnan\n", f="float64")
    assert np.isnan(nan["f"])
    for word in ("NA", "null", "#N/A"):
        with pytest.raises(PartyError, match="row 2, column 'a': it is not a valid int64"):
            rows_of_csv(tmp_path, f"a\n{word}\n", a="int64")


def test_a_column_that_csv_lacks_is_named(tmp_path):
    with pytest.raises(PartyError, match="it has no column 'b'"):
        rows_of_csv(tmp_path, "a\n1\n", a="int64", b="int64")
    with pytest.raises(PartyError, match="it has 2 columns 'a'"):
        rows_of_csv(tmp_path, "a,a\n1,2\n", a="int64")


def test_no_line_of_csv_is_lost(tmp_path):
    with pytest.raises(PartyError, match="one column and blank lines"):  # perhaps it is a null
        rows_of_csv(tmp_path, "a\n1\n\n3\n", a="int64")
    lines = "".join(f'{i},"one\ntwo, ""three"""\n' for i in range(60_000))
    found = rows_of_csv(tmp_path, "a,s\n" + lines, a="int64", s="string")
    assert [row["a"] for row in found] == list(range(60_000))
    assert {row["s"] for row in found} == {'one\ntwo, "three"'}
    with pytest.raises(PartyError, match="unterminated quoted field"):
        rows_of_csv(tmp_path, 'a,s\n1,x\n2,"Jo\n3,y\n', a="int64", s="string")


# -- places, many files


def test_a_folder_with_wildcards_in_its_name_is_that_folder(tmp_path):
    for name, value in (("data[12]", 1), ("data1", 666)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.csv").write_text(f"a\n{value}\n")
    for where in ("p.csv", "*.csv"):
        fields = {"p": {"source": f"csv:{where}", "columns": {"a": "int64"}, "rows": 1}}
        made = read_data_sets(fields, str(tmp_path / "data[12]"))["p"]
        opened = made.open()
        assert opened.read(made.type).to_pylist() == [{"a": 1}]
        opened.close()


def test_many_files_of_several_data_sets_are_read_on_workers(tmp_path):
    """Each by an engine that may have fewer files open than there are of all."""
    data = {}
    for name, count in (("a", 128), ("b", 100), ("c", 128), ("d", 100), ("e", 128)):
        (tmp_path / name).mkdir()
        for i in range(count):
            pq.write_table(pa.table({"x": [i]}), tmp_path / name / f"{i:03}.parquet")
        fields = {"source": f"parquet:{tmp_path}/{name}/*.parquet", "columns": {"x": "int64"}}
        data[name] = {**fields, "rows": count}

    def program():
        return [
            mp.device("PB")(lambda t: t.agg(s=t.x.sum()))(mp.dataset("bank", name)) for name in data
        ]

    with on_workers({"bank": data}) as made:
        for _ in range(3):
            found = mp.fetch(made, mp.evaluate(made, program))
            sums = [each["rows"] * (each["rows"] - 1) // 2 for each in data.values()]
            assert [t.to_pydict()["s"] for t in found] == [[each] for each in sums]
    (tmp_path / "a" / "more.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match="129 files of it"):
        read_data_sets(data, "/")["a"].open()


@pytest.mark.parametrize("given", [None, [], {"node0": None}, {"bank": 7}])
def test_what_is_no_data_of_a_simulator_is_refused(given):
    if given is not None:
        with pytest.raises(ConfigError, match="data"):
            mp.Simulator(mp.ClusterSpec.simple(1), data=given or [1])
