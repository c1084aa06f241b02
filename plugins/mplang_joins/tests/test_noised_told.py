"""Noise on shares counts for rules, and is taken from budgets, if it is in no other result."""

from __future__ import annotations

import numpy as np
import pytest
from mplang_analysis import follow
from mplang_joins.noised.form import NoiseForm
from mplang_joins.noised.ops import noisy_units
from mplang_joins.on_shares import oblivious
from mplang_joins.ops import salt
from mplang_spu import ShareType, resolve_config
from secret_joining import cluster
from test_noised import DATA

import mplang_core as mp
from mplang_core import FeProgram, PFunction, TensorType
from mplang_core.errors import MPLangError
from mplang_core.ext import flatten, run_program

FORM = NoiseForm("count", "", 0, "", (), 0, 0, 0, 0.5, 0.0, 2)


def followed(program):
    data = {party: DATA[party] for party in ("bank", "shop")}
    with mp.Simulator(cluster(), data=data) as sim:
        return follow(mp.compile(program).trace(sim).program)


def guards_of(found, output=0):
    """Return the guards of each source of a result, and why some do not count."""
    ((_, label), *_) = found.outputs[output].items()
    return {
        source.name.removeprefix("data set "): list(source.guards) for source in label.sources
    }, " ".join(found.remarks)


def spent(found):
    return [(each.party, each.data_set, each.epsilon, each.delta) for each in found.spends]


def of(function, *args, prepare=None, **arguments):
    def program():
        people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
        people = mp.device("bank")(prepare)(people) if prepare else people
        both = mp.overlap(people, sales, on=[("id", "who")], rows={"bank": 8, "shop": 9}, to="SP0")
        return mp.reveal(getattr(mp.dp, function)(both, *args, **arguments), to="bank").values[0]

    return program


def test_rules_and_budgets_of_both_owners_see_it():
    found = followed(of("mean", "pay", low=0, high=10, epsilon=0.25, delta=1e-6))
    guards, remarks = guards_of(found)
    assert not remarks
    assert {name: each[0].uses for name, each in guards.items() if each[0].uses} == {
        "people.id": ("match", "unit"), "people.pay": ("mean",), "sales.who": ("match", "unit"),
    }  # fmt: skip
    assert {(each[0].op, each[0].k, each[0].waits) for each in guards.values()} == {("dp", 0, "")}
    assert spent(found) == [(0, "people", 250_000, 1_000_000), (1, "sales", 250_000, 1_000_000)]


def test_what_is_counted_is_an_aggregate_of_the_unit():
    guards, _ = guards_of(followed(of("count", epsilon=1.0)))
    assert guards["sales.who"][0].uses == ("count", "match", "unit")


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda t: t.mutate(pay=t.pay * t.id.length()), "'pay' is computed"),
        (lambda t: t.limit(25), "not of rows as a data set gives them"),
    ],
)
def test_rows_that_are_not_as_given_do_not_count(prepare, why):
    found = followed(of("sum", "pay", prepare=prepare, low=0, high=1, epsilon=1.0))
    guards, remarks = guards_of(found)
    assert not any(guards.values())
    assert why in remarks
    assert spent(found) == []


# -- programs that were put together by hand


def units_of(rank, drawn, **other):
    """Return shares of what an owner makes of its units."""
    device, name, key = (("bank", "people", "id"), ("shop", "sales", "who"))[rank]
    fields = {**FORM._asdict(), "kinds": (("string", 0),), "on": (key,), "mine": rank, "rows": 9}
    made = mp.device(device)(noisy_units)(drawn, mp.dataset(device, name), **{**fields, **other})
    return mp.seal(made, to="SP0")


def salts():
    drawn = mp.device("bank")(salt)()
    return drawn, mp.put("shop", drawn)


def noised(shares, /, *, reveal=True, **other):
    """Return what the op gives of shares, in plain at the bank."""
    spu = mp.cur_ctx().cluster_spec.device("SP0")
    config = resolve_config(oblivious(spu.config), spu.mask)
    form = FORM._replace(**other)
    attrs = {**form._asdict(), "parties": spu.mask, "config": config.attrs()}
    outs = (ShareType.of(TensorType("i64", (form.numbers,)), config),)
    pfunc = PFunction("joins.noised", tuple(each.base_type for each in shares), outs, attrs)
    trees = flatten(tuple(shares))[1], flatten((0,))[1]
    (made,) = flatten(run_program(FeProgram(pfunc, *trees, tuple(shares)), spu.mask))[0]
    made = made.ctx.place(made, spu)
    return mp.reveal(made, to="bank") if reveal else made


def test_the_same_noise_in_two_results_counts_once():
    """What they differ by has none of it, and would tell of one unit that another owner changed."""

    def program():
        first, second = salts()
        of_bank = units_of(0, first)
        return noised([of_bank, units_of(1, second)]), noised([of_bank, units_of(1, second)])

    found = followed(program)
    (one, _), (other, remarks) = guards_of(found, 0), guards_of(found, 1)
    assert all(one.values())
    assert not any(other.values())
    assert "is in another result as well, and would cancel out" in remarks
    assert [each[:2] for each in spent(found)] == [(0, "people"), (1, "sales")]


def test_units_that_were_shared_twice_have_the_same_noise():
    """A secret was known by its shares, and one that is shared again has others."""

    def program():
        first, second = salts()
        fields = {**FORM._asdict(), "kinds": (("string", 0),), "on": ("id",), "mine": 0, "rows": 9}
        of_bank = mp.device("bank")(noisy_units)(first, mp.dataset("bank", "people"), **fields)
        return tuple(noised([mp.seal(of_bank, to="SP0"), units_of(1, second)]) for _ in range(2))

    found = followed(program)
    assert all(guards_of(found, 0)[0].values())
    assert not any(guards_of(found, 1)[0].values())
    assert [each[:2] for each in spent(found)] == [(0, "people"), (1, "sales")]


@pytest.mark.parametrize("again", [False, True])
def test_a_function_that_is_called_twice_takes_the_noise_of_other_units_each_time(again):
    twice = mp.function(lambda x, y: noised([x, y], reveal=False))

    def program():
        first, second = salts()
        of_bank, of_shop = units_of(0, first), units_of(1, second)
        made = [twice(of_bank, of_shop)]
        made.append(twice(of_bank if again else units_of(0, first), units_of(1, second)))
        return tuple(mp.reveal(each, to="bank") for each in made)

    found = followed(program)
    assert bool(any(guards_of(found, 1)[0].values())) is not again
    assert len(spent(found)) == (2 if again else 4)


def test_units_made_for_other_noise_do_not_count():
    """Noise of an epsilon of 20 is none where a budget is charged for one of 0.5."""

    def program():
        first, second = salts()
        return noised([units_of(0, first, epsilon=20.0), units_of(1, second)])

    guards, remarks = guards_of(followed(program))
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_units_with_something_added_do_not_count():
    def program():
        first, second = salts()
        changed = mp.device("SP0")(lambda x: x - 1)(units_of(0, first))
        return noised([changed, units_of(1, second)])

    guards, _ = guards_of(followed(program))
    assert not any(guards.values())


def test_noise_in_a_loop_does_not_count():
    def program():
        first, second = salts()
        shares = [units_of(0, first), units_of(1, second)]
        start = mp.seal(mp.put("bank", np.zeros(1, np.int64)), to="SP0")
        turn = lambda state: (state[0] + 1, noised(shares, reveal=False))  # noqa: E731
        _, last = mp.while_loop(lambda state: state[0] < 3, turn, (0, start))
        return mp.reveal(last, to="bank")

    found = followed(program)
    guards, remarks = guards_of(found)
    assert not any(guards.values())
    assert "it runs in a loop" in remarks
    assert spent(found) == []


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"epsilon": 50.0}, "epsilon is from"),
        ({"statistic": "median"}, "none of count, sum"),
        ({"sides": 3}, "units of 3 parties"),
        ({"low": 5}, "counted of no column"),
        ({"statistic": "histogram", "column": "x", "column_type": "string",
          "values": ("a",) * 5000},
         "the values are 1 to"),
    ],
)  # fmt: skip
def test_a_form_that_is_none_is_refused(other, why):
    def program():
        first, second = salts()
        return noised([units_of(0, first), units_of(1, second)], **other)

    with pytest.raises(MPLangError, match=why):
        followed(program)
