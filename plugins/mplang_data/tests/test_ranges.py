"""Published ranges of numbers: a program counts on them, and its owner's data keeps to them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from mplang_data import DataSet, Description, SourceError
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from mplang_data.ops import read
from mplang_tables import encode, one_hot, to_padded, to_tensor

import mplang_core as mp
from mplang_core.errors import ConfigError, KernelError, PartyError, TraceError

COLUMNS = {"age": "int64", "pay": "double", "sex": "string"}
RANGES = {"age": [0, 120], "pay": [-1, 1e6]}
PEOPLE = {"age": [20, 40, None], "pay": [1.5, None, 1e6], "sex": ["f", "m", "f"]}
CLUSTER = mp.ClusterSpec([{"name": "bank"}])


def simulator(folder, table, *, source="parquet", ranges=None):
    """Return a simulator of a bank with people."""
    rows = pa.table(table)
    if source == "parquet":
        pq.write_table(rows, folder / "people", row_group_size=1)
    elif source == "csv":
        csv.write_csv(rows, folder / "people")
    else:
        with pa.ipc.new_file(folder / "people", rows.schema) as file:
            file.write_table(rows)
    people = {
        "source": f"{source}:{folder}/people", "columns": COLUMNS, "readers": ["local"],
        "ranges": RANGES if ranges is None else ranges,
    }  # fmt: skip
    return mp.Simulator(CLUSTER, data={"bank": {"people": people}})


def interval(fn, **fields):
    """Return what is known of the result of a program over people of this description."""
    people = {"columns": COLUMNS, "rows": 3, "ranges": RANGES, **fields}
    with mp.catalogue({"bank": {"people": people}}):
        compiled = mp.compile(fn, cluster_spec=CLUSTER).trace(None)
    return str(mp.analysis.ranges(compiled).rows[-1].interval)


def people(*columns):
    return mp.dataset("bank", "people", list(columns))


def at(fn, *args, **options):
    return mp.device("P0")(fn)(*args, **options)


# -- programs


@pytest.mark.parametrize(
    ("fn", "known"),
    [
        (lambda: at(to_tensor, people("age"), rows=3), "[0, 120]"),
        (lambda: at(lambda x: x * 2, at(to_tensor, people("age"), rows=3)), "[0, 240]"),
        (lambda: at(to_padded, people("pay"), rows=9), "[0, 1]"),
        (lambda: at(to_tensor, at(lambda t: t[["age"]], people("age", "sex")), rows=3), "[0, 120]"),
        (
            lambda: at(
                to_tensor, at(one_hot, people("sex"), column="sex", values=("f", "m")), rows=3
            ),
            "[0, 1]",
        ),
        (
            lambda: at(encode, people("age", "sex"), column="sex", values=("f", "m"), others=True),
            "[-1, 120]",
        ),
    ],
)
def test_a_program_counts_on_published_ranges(fn, known):
    assert interval(fn) == known


def test_a_column_without_a_range_leaves_a_table_unknown():
    whole = lambda: at(to_tensor, people("pay"), rows=3)  # noqa: E731
    assert interval(whole, ranges={"age": [0, 120]}) == "not known"
    assert interval(lambda: people("age", "pay"), ranges={"age": [0, 120]}) == "not known"


def test_what_may_overflow_is_known_before_anybody_reads():
    spu = {"kind": "SPU", "members": [0, 1, 2], "config": {"field": "FM64"}}
    simple = mp.ClusterSpec.simple(3)
    cluster = mp.ClusterSpec(simple.nodes, {**simple.devices, "SP0": spu})

    def spread():
        x = mp.seal(mp.device("P0")(to_tensor)(mp.dataset("P0", "people", ["pay"]), rows=3))
        return mp.reveal(mp.device("SP0")(lambda x: (x * x).sum())(x))

    def statuses(high):
        people = {"columns": COLUMNS, "ranges": {"pay": [0, high]}}
        with mp.catalogue({"node0": {"people": people}}):
            compiled = mp.compile(spread, cluster_spec=cluster).trace(None)
        return [row.status for row in mp.analysis.ranges(compiled).alerts]

    assert "overflows" in statuses(1e6)
    assert not statuses(100)


# -- the owner's data


@pytest.mark.parametrize("source", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize(
    ("column", "value"),
    [("age", 121), ("age", -1), ("pay", float("nan")), ("pay", float("inf")), ("pay", -1.01)],
)
def test_data_outside_of_its_range_is_not_read(tmp_path, source, column, value):
    table = {**PEOPLE, column: [*PEOPLE[column][:2], value]}
    programs = [
        lambda: at(lambda t: t.filter(t.sex == "f")[["sex"]], people(column, "sex")),
        lambda: at(to_padded, at(lambda t: t.drop_null(), people(column)), rows=5),
        lambda: people(column),
    ]
    told = f"not what its owner published: column '{column}' has numbers outside"
    with simulator(tmp_path, table, source=source) as sim:
        for program in programs:
            with pytest.raises((PartyError, KernelError), match=told):
                mp.fetch(sim, mp.evaluate(sim, program))
        other = "pay" if column == "age" else "age"  # which nobody reads does no harm
        mp.fetch(sim, mp.evaluate(sim, lambda: people(other)))
    described = {"source": f"{source}:people", "columns": COLUMNS, "ranges": RANGES}
    made = read_data_sets({"people": described}, str(tmp_path))["people"]
    with pytest.raises(SourceError, match=f"column '{column}' has numbers outside"):
        check_data_set(made, whole=True)


def test_a_tensor_of_a_scan_is_checked(tmp_path):
    table = {**PEOPLE, "age": [20, 40, 121]}
    with (
        simulator(tmp_path, table) as sim,
        pytest.raises(PartyError, match="column 'age' has numbers outside"),
    ):
        mp.evaluate(sim, lambda: at(to_tensor, people("age"), rows=3))


@pytest.mark.parametrize("source", ["parquet", "csv", "arrow"])
def test_data_within_its_range_is_read(tmp_path, source):
    with simulator(tmp_path, PEOPLE, source=source) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, lambda: people("age", "pay", "sex")))
        assert found.to_pydict() == PEOPLE
    empty = {"age": pa.array([], pa.int64()), "pay": pa.array([], pa.float64()), "sex": [""][:0]}
    with simulator(tmp_path, {**empty, "sex": pa.array([], pa.string())}, source=source) as sim:
        assert mp.fetch(sim, mp.evaluate(sim, lambda: people("age"))).num_rows == 0


@pytest.mark.parametrize(("high", "fails"), [(11.0, False), (10.9, True)])
def test_arrays_have_a_range(tmp_path, high, fails):
    np.save(tmp_path / "scan.npy", np.arange(12.0).reshape(4, 3))
    scan = {
        "source": f"npy:{tmp_path}/scan.npy", "array": "f64[4, 3]", "range": [0, high],
        "readers": ["local"],
    }  # fmt: skip
    with mp.Simulator(CLUSTER, data={"bank": {"scan": scan}}) as sim:
        if not fails:
            assert mp.fetch(sim, mp.evaluate(sim, lambda: mp.dataset("bank", "scan")))[3, 2] == 11
            return
        with pytest.raises(PartyError, match="it has numbers outside of the range"):
            mp.evaluate(sim, lambda: mp.dataset("bank", "scan"))


@pytest.mark.parametrize(
    ("dtype", "value", "high"),
    [
        ("f2", np.inf, 1e6),
        ("f2", 1000.5, 1000.3),
        ("f4", np.inf, 1e39),
        ("f4", 0.1, 0.1),  # the nearest float32 is greater
        ("f8", np.nan, 1.0),
        ("i8", 2**53 + 1, 2**53),
        ("i8", 2**62 + 200, 2**62),
        ("u8", 2**63 + 1000, 2**63),
        ("i1", 127, 126),
    ],
)
@pytest.mark.filterwarnings("error")
def test_ends_of_ranges_are_not_rounded_to_the_type_of_an_array(tmp_path, dtype, value, high):
    np.save(tmp_path / "scan.npy", np.array([1, value], dtype))
    kind = str(mp.TensorType(np.dtype(dtype), (2,)))
    scan = DataSet(source=f"npy:{tmp_path}/scan.npy", array=kind, range=(0, high))
    with pytest.raises(SourceError, match="outside of the range"):
        check_data_set(scan)
    np.save(tmp_path / "scan.npy", np.array([0, 1], dtype))
    check_data_set(DataSet(source=f"npy:{tmp_path}/scan.npy", array=kind, range=(0, 1)))


# -- a program and its owner


@pytest.mark.parametrize(
    ("published", "told"),
    [
        ({"age": [0, 120]}, None),
        ({"age": [10, 100]}, None),
        ({"age": [0, 121]}, r"'age' is within \[0.0, 121.0\], the program says \[0.0, 120.0\]"),
        ({}, r"column 'age' is of no published range, the program says \[0.0, 120.0\]"),
    ],
)
def test_a_program_may_count_on_no_less_than_is_published(tmp_path, published, told):
    with mp.catalogue({"bank": {"people": {"columns": COLUMNS, "ranges": RANGES}}}):
        compiled = mp.compile(lambda: people("sex", "age"), cluster_spec=CLUSTER).trace(None)
    with simulator(tmp_path, PEOPLE, ranges=published) as sim:
        if told is None:
            mp.evaluate(sim, compiled)
            return
        with pytest.raises(PartyError, match=told):
            mp.evaluate(sim, compiled)


@pytest.mark.parametrize(
    "ranges",
    [
        ((0, 1), (0, 1)),
        ((1, 0),),
        (("a", 1),),
        ((0, float("nan")),),
        ((0,),),
        (7,),
        ((False, True),),
    ],
)
def test_ranges_that_are_none_are_refused(ranges):
    kind = mp.TableType((("age", "int64"),))
    program = lambda: at(read, name="people", type=kind, ranges=ranges)  # noqa: E731
    with pytest.raises(TraceError, match="ranges are 1 of"):
        mp.compile(program, cluster_spec=CLUSTER).trace(None)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"columns": COLUMNS, "ranges": {"sex": [0, 1]}}, "'sex', which is of no numbers"),
        ({"columns": COLUMNS, "ranges": {"id": [0, 1]}}, "'id', which is not a column"),
        ({"columns": COLUMNS, "ranges": {"age": [1, 0]}}, r"a range is \[low, high\]"),
        ({"columns": COLUMNS, "ranges": {"age": [0, float("inf")]}}, "ranges.age"),
        ({"columns": COLUMNS, "range": [0, 1]}, "a table has ranges"),
        ({"array": "c64[3]", "range": [0, 1]}, "numbers have no order"),
        ({"array": "f64[3]", "ranges": {"age": [0, 1]}}, "'age', which is not a column"),
    ],
)
def test_ranges_of_a_catalogue_that_are_wrong_are_told(fields, told):
    with pytest.raises((ConfigError, ValueError), match=told):
        Description(**fields)
