"""Values of public lists become codes and columns, as pandas makes them, and come back."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mplang_tables import decode, encode, from_tensor, one_hot, table, to_tensor
from table_programs import at

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

CITIES = ("Bern", "Ulm", "Trento")
FRAME = pd.DataFrame({"city": ["Ulm", "Bern", "Ulm", "Trento"], "n": [1, 2, 3, 4]})
ODD = pd.DataFrame({"city": ["Ulm", "Rome", None, "Bern"], "n": [1, 2, 3, 4]})


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=20.0) as made:
        yield made


def run(sim, op, data, **attrs):
    attrs = {"column": "city", "values": CITIES, **attrs}
    return mp.fetch(sim, mp.evaluate(sim, lambda: at("P0", op, at("P0", table(data)), **attrs)))


def categories(frame):
    return pd.Categorical(frame["city"], categories=list(CITIES))


def test_codes_are_those_of_pandas(sim):
    for frame, attrs in ((FRAME, {}), (ODD, {"others": True})):
        found = run(sim, encode, frame, **attrs)
        assert found.column("city").to_pylist() == categories(frame).codes.tolist()
        assert found.column("n").to_pylist() == frame["n"].tolist()


def test_columns_are_those_of_pandas(sim):
    for frame, attrs in ((FRAME, {}), (ODD, {"others": True})):
        found = run(sim, one_hot, frame, **attrs).to_pandas()
        wanted = pd.get_dummies(categories(frame), prefix="city", dtype="int64")
        pd.testing.assert_frame_equal(found.drop(columns="n"), pd.DataFrame(wanted))


@pytest.mark.parametrize(
    ("code", "wanted"), [(3, [1, 3, 3, 0]), (0, [1, 0, 0, 0]), (-7, [1, -7, -7, 0])]
)
def test_others_have_the_code_that_the_program_names(sim, code, wanted):
    assert run(sim, encode, ODD, others=code).column("city").to_pylist() == wanted


@pytest.mark.parametrize("kind", ["bool", "int64", "double"])
def test_others_have_a_column_if_the_program_names_it(sim, kind):
    found = run(sim, one_hot, ODD, others="other", type=kind)
    assert found.column_names == ["city_Bern", "city_Ulm", "city_Trento", "city_other", "n"]
    rows = np.array([found.column(i).to_pylist() for i in range(4)], int).T
    np.testing.assert_array_equal(rows, np.eye(4, dtype=int)[[1, 3, 3, 0]])


def test_the_column_of_others_has_a_name_that_is_free(sim):
    with pytest.raises(TraceError, match="two columns are called 'city_ULM'"):
        run(sim, one_hot, FRAME, others="ULM")
    with pytest.raises(TraceError, match="codes are of the type int64"):
        run(sim, encode, FRAME, others=2**63)


@pytest.mark.parametrize("cells", [pa.array([], pa.string()), pa.array([None], pa.string())])
def test_tables_without_values(sim, cells):
    data = pa.table({"city": cells})
    count = len(cells)
    assert run(sim, encode, data, others=True).column("city").to_pylist() == [-1] * count
    assert run(sim, one_hot, data, others="other").column("city_other").to_pylist() == [1] * count


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (CITIES, "string"),
        ((7, -3, 2**63 - 1), "int64"),
        ((7, 255), "uint8"),
        ((True, False), "bool"),
    ],
)
def test_codes_become_values_again(sim, mode, values, kind):
    data = pa.table({"n": [1, 2, 3], "c": pa.array([values[i] for i in (1, 0, 1)]).cast(kind)})

    def program():
        x = at("P0", encode, at("P0", table(data)), column="c", values=values)
        return at("P0", decode, x, column="c", values=values, type=kind)

    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode)).equals(data)


@pytest.mark.parametrize("kind", ["int8", "uint64", "int64"])
def test_numbers_that_are_no_positions_are_refused_unless_they_are_expected(sim, kind):
    data = pa.table({"city": pa.array([2, 99, None], kind)})
    message = r"table_programs\.py:\d+: table\.decode: column 'city' has nulls, or numbers that are"
    with pytest.raises(PartyError, match=message) as error:
        run(sim, decode, data)
    assert "99" not in str(error.value)
    assert run(sim, decode, data, others=True).column("city").to_pylist() == ["Trento", None, None]


def test_lists_longer_than_the_type_of_the_codes(sim):
    values = tuple(f"v{i}" for i in range(300))
    data = pa.table({"city": pa.array([0, 127, -1], pa.int8())})
    found = run(sim, decode, data, values=values, others=True)
    assert found.column("city").to_pylist() == ["v0", "v127", None]


@pytest.mark.parametrize(
    ("data", "attrs", "message"),
    [
        ({"city": [0.0]}, {}, "'city' is of the type double; positions are integers"),
        ({"town": [0]}, {}, "no column 'city'; there are town"),
        ({"city": [0]}, {"values": ()}, "at least one value"),
        ({"city": [0]}, {"values": (1, 2)}, "of the type string, got '1'"),
        ({"city": [0]}, {"type": "double", "values": (1,)}, "strings and integers are listed"),
    ],
)
def test_lists_that_do_not_fit(sim, data, attrs, message):
    with pytest.raises(TraceError, match=re.escape(message)):
        run(sim, decode, data, **attrs)


def test_categories_are_computed_with_on_shares_and_come_back_with_their_names(sim):
    """The most frequent city of two parties."""

    def sealed(party):
        x = at(party, one_hot, at(party, table(FRAME[["city"]])), column="city", values=CITIES)
        return mp.seal(at(party, to_tensor, x, rows=4))

    def named():
        best = mp.device("SP0")(lambda x, y: (x + y).sum(axis=0).argmax().reshape(1, 1))
        x = mp.reveal(best(sealed("P0"), sealed("P1")), to="P1")
        x = at("P1", from_tensor, x, columns=("city",))
        return at("P1", decode, x, column="city", values=CITIES)

    assert mp.fetch(sim, mp.evaluate(sim, named)).to_pydict() == {"city": ["Ulm"]}
