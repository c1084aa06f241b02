"""``check="simulator"``: a program runs on synthetic data first, and nothing is sent before."""

from __future__ import annotations

import re
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_simulator import Simulator
from mplang_simulator.rehearsal import declared_ranges, rehearse

import mplang_core as mp
from mplang_core.ext import ConfigError, PartyError, PrecisionWarning

pytestmark = pytest.mark.needs("spu", "jax", "tables", "data")

THREE = mp.ClusterSpec([{"name": name} for name in ("bank", "shop", "clinic")])
SAFE = np.float32([1, 2, 3, 4])
KNOWN = {
    "bank": {
        "people": {
            "columns": {"age": "int64", "pay": "float64", "sex": "string", "joined": "date"},
            "ranges": {"age": [18, 90], "pay": [0, 1e6]},
            "rows": 50,
        }
    }
}


@pytest.fixture(scope="module")
def host():
    with Simulator(THREE, check_numbers=False) as made:
        with mp.with_ctx(made):
            made.x = mp.put("P0", SAFE)
        yield made


def told(host, program, *args):
    """Return line number and text of each warning of a rehearsal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mp.evaluate(host, program, *args, check="simulator")
    found = [each for each in caught if each.category is PrecisionWarning]
    assert all(each.filename == __file__ for each in found)
    return [(each.lineno, str(each.message)) for each in found]


def on_spu(fn, **options):
    return lambda x: mp.reveal(mp.device("SP0")(fn)(mp.seal(x, **options)), to="P0")


def test_an_overflow_that_declared_ranges_alone_tell(host):
    def program(x):
        cubed = mp.device("SP0")(lambda x: x * x * x)(mp.seal(x, range=(0, 1e5)))
        return mp.reveal(cubed, to="P0")

    ((line, text),) = told(host, program, host.x)
    assert line == program.__code__.co_firstlineno + 1
    assert re.match(r"on synthetic data \(check='simulator'; .* SPU's multiply gives", text)
    assert "check_numbers" not in text


def test_an_overflow_further_down_of_what_was_computed_before(host):
    def program(x):
        y = mp.device("SP0")(lambda x: x * 1000)(mp.seal(x, range=(0, 1e6)))
        return mp.reveal(mp.device("SP0")(lambda y: y * y)(y), to="P0")

    assert [line for line, _ in told(host, program, host.x)] == [
        program.__code__.co_firstlineno + 2
    ]


def test_a_tie_of_which_the_program_did_not_think(host):
    gaps = on_spu(lambda x: (1 / jnp.diff(jnp.sort(x))).max())
    ((_, text),) = told(host, gaps, host.x)
    assert "where float64 gives inf" in text


def test_a_zero_of_which_the_program_did_not_think(host):
    ((_, text),) = told(host, on_spu(lambda x: jnp.sum(1 / x), range=(0, 9)), host.x)
    assert "inf" in text


@pytest.mark.parametrize(
    "program",
    [
        on_spu(lambda x: (x - x.mean()) / x.std(), range=(0, 1e5)),
        on_spu(jnp.sort),
        on_spu(lambda x: 1 / (1 + jnp.exp(-x))),
        lambda x: x,
    ],
    ids=["standardized", "sorted", "logistic", "nothing"],
)
def test_a_clean_program_is_told_nothing(host, program):
    assert told(host, program, host.x) == []


def test_it_is_the_same_each_time(host):
    program = on_spu(lambda x: x * x * x, range=(0, 1e5))

    def exact():
        return [re.findall(r"float64 gives (\S+) at (\S+)", text) for _, text in runs.pop()]

    runs = [told(host, program, host.x) for _ in range(2)]
    assert exact() == exact()


def test_public_arguments_are_what_they_are(host):
    def program(x, factor):
        scaled = mp.device("SP0")(lambda x, c: x * c)(mp.seal(x), mp.put("P0", factor))
        return mp.reveal(scaled, to="P0")

    assert told(host, program, host.x, np.float32(0.5)) == []
    assert told(host, program, host.x, np.float32(1e20))


def test_an_error_ends_it_before_anything_is_sent(host, monkeypatch):
    from mplang_tables import to_tensor

    def program():
        table = mp.dataset("bank", "people", ["age"])
        return mp.device("P0")(to_tensor)(
            mp.device("P0")(lambda t: t.filter(t.age > 30))(table), rows=50
        )

    monkeypatch.setattr(host, "submit", lambda *args: pytest.fail("it was sent"))
    with mp.catalogue(KNOWN), pytest.raises(PartyError, match="on synthetic data") as caught:
        mp.evaluate(host, program, check="simulator")
    assert re.search(r"failed in table.to_tensor at test_rehearsal.py:\d+", str(caught.value))


def test_a_data_set_is_made_of_its_schema_and_its_ranges(host):
    from mplang_tables import to_tensor

    def program():
        table = mp.dataset("bank", "people", ["pay"])
        pay = mp.device("P0")(to_tensor)(table, rows=50)
        return mp.reveal(mp.device("SP0")(lambda x: (x**2).sum() ** 2)(pay), to="P0")

    with mp.catalogue(KNOWN):
        traced = mp.compile(program, cluster_spec=THREE)
    with pytest.warns(PrecisionWarning, match="on synthetic data"):
        rehearse(host, traced.program, [])  # the host itself has no such data


@pytest.mark.needs("ibis")
def test_texts_of_a_program_are_among_those_of_its_data(host):
    def program():
        people = mp.dataset("bank", "people")
        old = mp.device("P0")(lambda t: t.filter(t.sex == "female").agg(n=t.age.mean()))(people)
        from mplang_tables import to_tensor

        return mp.device("P0")(to_tensor)(old, rows=1)  # null, were there nobody

    with mp.catalogue(KNOWN):
        rehearse(host, mp.compile(program, cluster_spec=THREE).program, [])


def test_what_cannot_be_made_up_is_refused(host):
    kept = mp.evaluate(host, lambda x: mp.keep(mp.seal(x)), host.x)
    with pytest.raises(ConfigError, match="cannot make up an argument of type spu.share"):
        mp.evaluate(host, lambda x: mp.reveal(x, to="P0"), kept, check="simulator")
    with pytest.raises(ConfigError, match="check is 'simulator' or None, got 'Simulator'"):
        mp.evaluate(host, lambda x: x, host.x, check="Simulator")


def test_ranges_of_inputs_are_found_through_calls_and_copies():
    scaled = mp.builtin_function(lambda x: mp.put("P0", x, range=(-5, 5)))

    def program(x, y):
        return mp.seal(scaled(x), range=(0, 9)), y

    kind = mp.MPType(mp.TensorType("f32", (3,)), mp.Mask.of(0))
    traced = mp.compile(program, kind, kind, cluster_spec=THREE)
    assert {i: (x.low, x.high) for i, x in declared_ranges(traced.program).items()} == {0: (0, 5)}


@pytest.mark.long("starts three workers in production")
def test_workers_in_production_are_sent_nothing_before(monkeypatch):
    with LocalCluster(3, mode="production") as workers, mp.connect("http", workers.spec) as host:
        with mp.with_ctx(host):
            x = mp.put("P0", SAFE)
        ((_, text),) = told(host, on_spu(lambda x: (1 / jnp.diff(jnp.sort(x))).max()), x)
        assert "on synthetic data" in text
        assert told(host, on_spu(lambda x: x + 1), x) == []
        monkeypatch.setattr(host, "submit", lambda *args: pytest.fail("it was sent"))
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrecisionWarning)
            with pytest.raises(PrecisionWarning, match="SPU's multiply"):
                mp.evaluate(host, on_spu(lambda x: x * x * x, range=(0, 1e5)), x, check="simulator")
