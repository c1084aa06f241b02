"""Published values of columns: a program counts on them, and its owner's data keeps to them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import yaml
from mplang_data import Description, SourceError, published_values
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from mplang_data.synthetic import synthetic_data
from mplang_tables import (
    decode,
    encode,
    fill_nulls,
    from_tensor,
    one_hot,
    to_integers,
    to_masked,
    to_tensor,
)
from mplang_tables.ext import Scan

import mplang_core as mp
from mplang_core.errors import ConfigError, KernelError, PartyError, TraceError

COLUMNS = {"age": "int64", "sex": "string", "pay": "decimal(9, 2)"}
VALUES = {"sex": ["f", "m"], "age": [20, 40, 60]}
SEX = ["f", "m", "m", None]
PEOPLE = {"age": [20, 40, None, 20], "sex": SEX}
CLUSTER = mp.ClusterSpec([{"name": "bank"}])
PAY = pa.array([Decimal(each) for each in ("12.50", "0.99", "0.01", "0")], pa.decimal128(9, 2))


def simulator(folder, *, source="parquet", values=None, **columns):
    """Return a simulator of a bank with people; of Parquet each row is a batch."""
    rows = pa.table({"age": PEOPLE["age"], "sex": PEOPLE["sex"], "pay": PAY, **columns})
    if source == "parquet":
        pq.write_table(rows, folder / "people", row_group_size=1)
    else:
        csv.write_csv(rows, folder / "people")
    people = {
        "source": f"{source}:{folder}/people", "columns": COLUMNS, "readers": ["local"],
        "values": VALUES if values is None else values, "ranges": {"pay": [0, 1000]},
    }  # fmt: skip
    return mp.Simulator(CLUSTER, data={"bank": {"people": people}})


def people(*columns):
    return mp.dataset("bank", "people", list(columns))


def at(fn, *args, **options):
    return mp.device("P0")(fn)(*args, **options)


def run(sim, program):
    return mp.fetch(sim, mp.evaluate(sim, program))


# -- programs


def test_codes_are_those_of_the_owners_list(tmp_path):
    def program():
        values = published_values("bank", "people", "sex")
        x = at(encode, people("sex"), column="sex", values=values, others=len(values))
        hot = at(one_hot, people("sex"), column="sex", values=values, others="other")
        back = at(decode, x, column="sex", values=values, others=True)
        return x, hot, back

    with simulator(tmp_path) as sim:
        codes, hot, back = run(sim, program)
    assert codes.to_pydict() == {"sex": [0, 1, 1, 2]}
    wanted = pd.get_dummies(pd.Categorical(["f", "m", "m", "other"]), prefix="sex", dtype="int64")
    pd.testing.assert_frame_equal(hot.to_pandas(), pd.DataFrame(wanted))
    assert back.to_pydict() == {"sex": SEX}


def test_a_program_without_values_says_who_may_publish_them(tmp_path):
    with simulator(tmp_path) as sim:
        for column, message in (
            ("pay", "the values of column 'pay' are not published; its owner names them in the"),
            ("town", "offers no column 'town'"),
        ):
            with pytest.raises(TraceError, match=rf"test_values\.py:\d+: .*{message}"):
                mp.evaluate(sim, lambda c=column: published_values("P0", "people", c))
    with pytest.raises(TraceError, match="its schema is not known"):
        mp.compile(lambda: published_values("bank", "people", "sex"), cluster_spec=CLUSTER).trace(
            None
        )


def test_a_program_that_was_compiled_by_another_list_does_not_run(tmp_path):
    def program():
        return at(
            encode, people("sex"), column="sex", values=published_values("bank", "people", "sex")
        )

    (tmp_path / "before").mkdir()
    (tmp_path / "now").mkdir()
    with simulator(
        tmp_path / "before", values={"sex": ["m", "f"]}, sex=["f", "m", "m", "f"]
    ) as sim:
        compiled = mp.compile(program, cluster_spec=CLUSTER)
        compiled.trace(sim)
        assert run(sim, compiled).to_pydict() == {"sex": [1, 0, 0, 1]}
    with (
        simulator(tmp_path / "now") as sim,
        pytest.raises(TraceError, match="values of column 'sex' in data set 'people' of bank"),
    ):
        mp.evaluate(sim, compiled)


def interval(program):
    known = {
        "bank": {"people": {"columns": COLUMNS, "values": VALUES, "ranges": {"pay": [0, 0.29]}}}
    }
    with mp.catalogue(known):
        compiled = mp.compile(program, cluster_spec=CLUSTER).trace(None)
    return str(mp.analysis.ranges(compiled).rows[-1].interval)


@pytest.mark.parametrize(
    ("program", "known"),
    [
        (lambda: at(encode, people("sex"), column="sex", values=("f", "m")), "[0, 1]"),
        (lambda: at(encode, people("sex"), column="sex", values=("f", "m"), others=7), "[0, 7]"),
        (lambda: at(encode, people("sex"), column="sex", values=("f",), others=True), "[-1, 0]"),
        (lambda: at(one_hot, people("sex"), column="sex", values=("f",), others="x"), "[0, 1]"),
        (lambda: at(to_integers, people("pay"), column="pay", unit="cents"), "[0, 29]"),
        (lambda: at(to_integers, people("pay"), column="pay", unit="0.1"), "[0, 3]"),
        (lambda: at(to_integers, people("age"), column="age", unit="cents"), "[2000, 6000]"),
        (lambda: at(to_integers, people("pay", "sex"), column="pay", unit="cents"), "[0, 29]"),
        (lambda: at(fill_nulls, people("pay", "sex"), columns=("sex",), value="f"), "[0, 0.29]"),
    ],
)
def test_ranges_follow_through_codes_and_cents(program, known):
    assert interval(program) == known


def test_synthetic_people_have_the_values_that_are_published_or_listed():
    def program():
        x = at(
            encode,
            people("sex", "age"),
            column="sex",
            values=published_values("bank", "people", "sex"),
        )
        return at(one_hot, x, column="age", values=(20, 40))

    bank = {"columns": COLUMNS, "values": {"sex": ["f", "m"]}}
    with mp.catalogue({"bank": {"people": bank}}) as known:
        compiled = mp.compile(program, cluster_spec=CLUSTER).trace(None)
    made = synthetic_data(compiled.program, ["bank"], known)["bank"]["people"]
    assert set(made.value["sex"].to_pylist()) == {"f", "m"}
    assert set(made.value["age"].to_pylist()) == {20, 40}
    with mp.Simulator(CLUSTER, data={"bank": {"people": made}}) as sim:
        assert run(sim, compiled).num_rows == made.value.num_rows


# -- scans


def test_tables_of_sources_are_converted_part_by_part(tmp_path, monkeypatch):
    monkeypatch.setattr(Scan, "to_table", lambda self: pytest.fail("it was read as a whole"))

    def program():
        x = at(encode, people("sex"), column="sex", values=("f", "m"), others=True)
        hot = at(one_hot, people("sex"), column="sex", values=("f", "m"), others=True)
        pay = at(to_tensor, at(to_integers, people("pay"), column="pay", unit="cents"), rows=4)
        age = at(to_tensor, at(fill_nulls, people("age"), columns=("age",), value=0), rows=4)
        return x, hot, pay, age, at(to_masked, people("age"), rows=5)

    with simulator(tmp_path) as sim:
        codes, hot, pay, age, cells = run(sim, program)
    assert codes.column("sex").to_pylist() == [0, 1, 1, -1]
    assert hot.column("sex_m").to_pylist() == [0, 1, 1, 0]
    assert pay.tolist() == [[1250], [99], [1], [0]]
    assert age.tolist() == [[20], [40], [0], [20]]
    assert cells.valid[:, 0].tolist() == [True, True, False, True, False]


def test_a_source_without_rows_is_converted(tmp_path):
    empty = pa.table({"age": PEOPLE["age"], "sex": SEX, "pay": PAY}).slice(0, 0)
    pq.write_table(empty, tmp_path / "none.parquet")
    people_ = {
        "source": f"parquet:{tmp_path}/none.parquet",
        "columns": COLUMNS,
        "readers": ["local"],
    }
    with mp.Simulator(CLUSTER, data={"bank": {"people": people_}}) as sim:
        found = run(sim, lambda: at(encode, people("sex"), column="sex", values=("f", "m")))
    assert found.to_pydict() == {"sex": []}
    assert found.schema.field("sex").type == pa.int64()


# -- the owner's data


@pytest.mark.parametrize(
    ("source", "column", "cells"),
    [("parquet", "sex", ["f", "SECRET", "m", None]), ("csv", "age", [20, 30, 40, 60])],
)
def test_data_with_other_values_is_not_read(tmp_path, source, column, cells):
    message = f"not what its owner published: column '{column}' has values that are not in the list"
    with simulator(tmp_path, source=source, **{column: cells}) as sim:
        for program in (
            lambda: people(column),
            lambda: at(lambda t: t.filter(t.pay == 0)[["pay"]], people(column, "pay")),
            lambda: at(
                to_masked,
                at(lambda t: t[["pay"]].cast({"pay": "float64"}), people("pay", column)),
                rows=9,
            ),
        ):
            with pytest.raises((PartyError, KernelError), match=message) as error:
                run(sim, program)
            assert "SECRET" not in str(error.value)
        run(sim, lambda: people("pay"))  # which nobody reads does no harm
    described = {"source": f"{source}:people", "columns": COLUMNS, "values": VALUES}
    made = read_data_sets({"people": described}, str(tmp_path))["people"]
    with pytest.raises(SourceError, match=f"column '{column}' has values that are not in the list"):
        check_data_set(made, whole=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"town": ["x"]}, "values of 'town', which is not a column that is offered"),
        ({"pay": [1]}, r"values: column 'pay' is of the type decimal128\(9, 2\); strings and"),
        ({"sex": []}, "at least one value, and each of them once"),
        ({"sex": ["f", "f"]}, "at least one value, and each of them once"),
        ({"sex": ["f", 1]}, "column 'sex' is of the type string, got '1'"),
        ({"age": [True]}, "column 'age' is of the type int64, got 'True'"),
        ({"age": [2**63]}, "column 'age' is of the type int64, got"),
        ({"age": [1.5]}, "values.age"),
        ({"sex": "fm"}, "values.sex"),
        (yaml.safe_load("sex: [yes, no]"), "got 'True'; in YAML, words such as no and on stand in"),
        ({"age": list(range(5000))}, "values.age"),
    ],
)
def test_values_of_a_catalogue_that_are_wrong_are_told(values, message):
    with pytest.raises((ConfigError, ValueError), match=message):
        Description(columns=COLUMNS, values=values)


def test_values_are_published_as_they_are():
    made = Description(columns={"ok": "bool", **COLUMNS}, values={**VALUES, "ok": [True, False]})
    again = Description(**made.public())
    assert again == made
    assert made.public()["values"] == {**VALUES, "ok": [True, False]}
    assert [type(each) for each in again.values["ok"]] == [bool, bool]


def test_a_mean_by_group_goes_back_to_a_table_with_the_owners_names(tmp_path):
    def program():
        values = published_values("bank", "people", "sex")
        x = at(one_hot, people("sex"), column="sex", values=values, others=True, type="int64")
        counts = at(lambda x: x.sum(axis=0).reshape(1, -1), at(to_tensor, x, rows=4))
        return at(from_tensor, counts, columns=values)

    with simulator(tmp_path) as sim:
        assert run(sim, program).to_pylist() == [{"f": 1, "m": 2}]
    assert np.sum(pd.Series(SEX) == "m") == 2
