"""A guard on shares counts for rules only if each owner's rows reach it as that owner made them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from across_parties import held
from mplang_analysis import follow
from mplang_joins.guarded.ops import units
from mplang_joins.on_shares import oblivious
from mplang_joins.ops import salt
from mplang_spu import ShareType, resolve_config
from mplang_tables import table as literal
from secret_joining import cluster
from test_guarded import DATA, ON

import mplang_core as mp
from mplang_core.errors import MPLangError
from mplang_core.ext import flatten, run_program

ASKED = {"k": 20, "pay": ("pay", "sum"), "n": "units"}


def guards_of(program):
    """Return the guards of each source of a program's result, and why some do not count."""
    with mp.Simulator(cluster(), data=DATA) as sim:
        made = mp.compile(program).trace(sim)
    followed = follow(made.program)
    ((_, label), *_) = followed.outputs[0].items()
    return {
        source.name.removeprefix("data set "): list(source.guards) for source in label.sources
    }, " ".join(followed.remarks)


def tables(prepare=None):
    people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
    return mp.device("bank")(prepare)(people) if prepare else people, sales


def of(people, sales, **asked):
    return mp.guard.aggregate(mp.overlap(people, sales, on=ON, to="SP0"), **{**ASKED, **asked})


def revealed(prepare=None, **asked):
    def program():
        rows = {"rows": {"bank": 8}} if prepare else {}
        people, sales = tables(prepare)
        both = mp.overlap(people, sales, on=ON, to="SP0", **rows)
        return mp.reveal(mp.guard.aggregate(both, **{**ASKED, **asked}), to="bank").table()

    return guards_of(program)


def test_rules_see_k_the_units_and_what_each_column_is_used_for():
    guards, remarks = revealed(by=["city", "kind"], max_share=0.25)
    assert not remarks
    uses = {name: each[0].uses for name, each in guards.items() if each[0].uses}
    assert uses == {
        "people.id": ("match", "unit", "units"), "people.pay": ("sum",), "people.city": ("by",),
        "sales.who": ("match", "unit", "units"), "sales.kind": ("by",),
    }  # fmt: skip
    for name, (guard,) in guards.items():
        unit = "data set people.id" if name.startswith("people") else "data set sales.who"
        assert guard[:3] == ("guard", (unit,), 20)
        assert guard.max_share == 250_000
        assert not guard.waits


def test_filters_and_their_functions_are_seen():
    guards, _ = revealed(lambda t: t.filter(t.city.upper() == "X"))
    assert guards["people.city"][0].uses == ("filter",)
    assert guards["people.city"][0].functions == ("upper",)


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda t: t.mutate(pay=t.pay * t.id.length()), "'pay' is computed"),
        (lambda t: t.filter(t.id != "a"), "a filter names the unit, 'id'"),
        (lambda t: t.mutate(id=t.id.substr(0, 1)), "'id' is computed"),
        (lambda t: t.limit(25), "not of rows as a data set gives them"),
        (lambda t: t.group_by("id").agg(pay=t.pay.sum()), "not of rows as a data set gives them"),
    ],
)
def test_rows_that_are_not_as_given_do_not_count(prepare, why):
    guards, remarks = revealed(prepare)
    assert not any(each for name, each in guards.items() if name.startswith("people"))
    assert why in remarks


def test_a_list_of_units_in_the_program_does_not_count():
    """Twenty persons, and then twenty-one, would tell of one; of whichever owner's rows it is."""

    def program(side):
        people, sales = tables()
        chosen = mp.device(("bank", "shop")[side])(literal({"who": ["a", "b", "d"]}))()
        if side == 0:
            people = mp.device("bank")(lambda t, c: t.semi_join(c, t.id == c.who))(people, chosen)
        else:
            sales = mp.device("shop")(lambda t, c: t.semi_join(c, t.who == c.who))(sales, chosen)
        both = mp.overlap(people, sales, on=ON, rows={"bank": 8, "shop": 9}, to="SP0")
        return mp.reveal(mp.guard.aggregate(both, **ASKED), to="bank").table()

    for side in (0, 1):
        guards, remarks = guards_of(lambda side=side: program(side))
        assert not any(guards.values())
        assert "is matched with a list" in remarks


def test_units_that_another_owner_has_count():
    def program():
        people, sales = tables()
        there = mp.put("bank", mp.dataset("shop", "sales", ["who"]))
        people = mp.device("bank")(lambda t, c: t.semi_join(c, t.id == c.who))(people, there)
        both = mp.overlap(people, sales, on=ON, rows={"bank": 8, "shop": 9}, to="SP0")
        return mp.reveal(mp.guard.aggregate(both, **ASKED), to="bank").table()

    _, remarks = guards_of(program)
    assert "is matched with a list" not in remarks


# -- programs that were put together by hand


def made_by(rank, table, salt, on, functions=(), /, **other):
    """Return what an owner makes of its units, as a program asks for it."""
    fields = {"kinds": (("string", 0),), "by": (), "bits": 50,
              "counts": 50, "bounded": False, "sides": 2, "rows": 9}  # fmt: skip
    fields |= {"side": rank, "on": (on,), "functions": functions, **other}
    return mp.device(("bank", "shop")[rank])(units)(salt, table, **fields)


def guarded(shares, forms, wanted, /, **other):
    """Return what the op of the guard gives, in plain at the bank."""
    kinds = [each.base_type for each in shares]
    like = kinds[0]
    spu = mp.cur_ctx().cluster_spec.device("SP0")
    config = resolve_config(oblivious(spu.config), spu.mask)
    attrs = {"sides": forms, "wanted": wanted, "k": 20, "parties": spu.mask,
             "config": config.attrs(), **other}  # fmt: skip
    types = [mp.TensorType("bool", (1,)), *[mp.TensorType("i64", (1,))] * len(wanted)]
    outs = tuple(ShareType(t, like.parties, like.protocol, like.field, like.fxp) for t in types)
    pfunc = mp.PFunction("joins.guarded", tuple(kinds), outs, attrs)
    trees = flatten(tuple(shares))[1], flatten((0,) * len(outs))[1]
    made = flatten(run_program(mp.FeProgram(pfunc, *trees, tuple(shares)), spu.mask))[0]
    return [mp.reveal(each.ctx.place(each, spu), to="bank") for each in made]


PAY = (("pay", ("sum",)),)
FORM, OTHER = (1, PAY, ("int32",), 50, 50, False, 0, 2), (1, (), (), 50, 50, False, 1, 2)
SUM = (("sum", 0, "pay"),)


def by_hand(change=lambda x: x, forms=(FORM, OTHER), seal=mp.seal, **other):
    """Return guards of a sum that a program asks for by hand, with something changed in it."""

    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = made_by(0, people, drawn, "id", PAY)
        other_ = made_by(1, sales, mp.put("shop", drawn), "who")
        shares = [seal(change(one), to="SP0"), mp.seal(other_, to="SP0")]
        return guarded(shares, forms, SUM, **other)[1]

    return guards_of(program)


def test_what_is_put_together_by_hand_counts_if_nothing_is_changed():
    guards, remarks = by_hand()
    assert not remarks
    assert guards["people.pay"][0][:4] == ("guard", ("data set people.id",), 20, ("sum",))


def test_what_code_has_changed_at_its_party_does_not_count():
    guards, remarks = by_hand(lambda x: mp.device("bank")(lambda x: x.at[1].set(1))(x))
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_what_code_has_changed_on_shares_does_not_count():
    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = mp.seal(made_by(0, people, drawn, "id", PAY), to="SP0")
        other = mp.seal(made_by(1, sales, mp.put("shop", drawn), "who"), to="SP0")
        one = mp.device("SP0")(lambda x: x.at[1].set(1))(one)
        return guarded([one, other], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_units_that_the_program_makes_up_do_not_count():
    def program():
        people, _ = tables()
        one = mp.seal(made_by(0, people, mp.device("bank")(salt)(), "id", PAY), to="SP0")
        other = mp.seal(mp.put("shop", np.ones((2, 9), np.int64)), to="SP0")
        return guarded([one, other], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_a_choice_of_what_was_made_and_what_was_not_does_not_count():
    def change(x):
        zeros = mp.put("bank", np.zeros((4, 9), np.int64))
        return mp.uniform_cond(mp.public(np.array(True)), lambda x, z: x, lambda x, z: z, x, zeros)

    try:
        guards, _ = by_hand(change)
    except MPLangError:
        return  # it may be no program at all
    assert not any(guards.values())


def test_another_form_than_that_which_was_made_does_not_count():
    """Planes of one form, taken for those of another, would be counted as units."""
    wider = (3, (), (), 50, 50, False, 0, 2)
    guards, remarks = by_hand(forms=((*FORM[:3], 49, *FORM[4:]), OTHER))
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks
    with pytest.raises(MPLangError, match="sum of 'pay' is not what its owner computes"):
        by_hand(forms=(wider, OTHER))


def test_a_function_that_the_owner_was_not_asked_for_is_refused():
    with pytest.raises(MPLangError, match="mean of 'pay' is not what its owner computes"):
        by_hand_wanted((("mean", 0, "pay"),))
    with pytest.raises(MPLangError, match="units of 'id' is not what its owner computes"):
        by_hand_wanted((("units", 0, "id"),))


def by_hand_wanted(wanted):
    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        shares = [made_by(0, people, drawn, "id", PAY),
                  made_by(1, sales, mp.put("shop", drawn), "who")]  # fmt: skip
        return guarded([mp.seal(x, to="SP0") for x in shares], (FORM, OTHER), wanted)[1]

    return guards_of(program)


def test_one_data_set_on_both_sides_does_not_count():
    """One person of it could decide on the rows of twenty others."""

    def program():
        people, _ = tables()
        drawn = mp.device("bank")(salt)()
        there = mp.put("shop", people)
        shares = [made_by(0, people, drawn, "id", PAY),
                  made_by(1, there, mp.put("shop", drawn), "city")]  # fmt: skip
        return guarded([mp.seal(x, to="SP0") for x in shares], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "one data set is in two of its operands" in remarks


def test_what_is_made_in_a_loop_does_not_count():
    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        first = made_by(0, people, drawn, "id", PAY)
        _, one = mp.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, made_by(0, people, drawn, "id", PAY)),
            (mp.put("bank", 0), first),
        )
        other = made_by(1, sales, mp.put("shop", drawn), "who")
        return guarded([mp.seal(x, to="SP0") for x in (one, other)], (FORM, OTHER), SUM)[1]

    try:
        guards, _ = guards_of(program)
    except MPLangError:
        return
    assert not any(guards.values())


def test_shares_at_other_members_do_not_count():
    """Each was a share of the one secret, and together they were none: another number."""

    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = mp.seal(made_by(0, people, drawn, "id", PAY), to="SP0")
        other = mp.seal(made_by(1, sales, mp.put("shop", drawn), "who"), to="SP0")
        turned = mp.pshfl_s(one, [0, 1], [1, 0])
        spu = mp.cur_ctx().cluster_spec.device("SP0")
        turned = turned.ctx.place(turned, spu)
        return guarded([turned, other], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_k_is_what_the_op_says():
    guards, _ = by_hand(k=3)
    assert guards["people.pay"][0].k == 3
    with pytest.raises(MPLangError, match="k is a number of units, at least 1, got 0"):
        by_hand(k=0)


def test_a_sort_that_tells_ties_is_refused():
    quick = {"protocol": "SEMI2K", "field": "FM64", "sort_method": "quick"}
    with pytest.raises(MPLangError, match="its sort tells nothing, unlike the method 'quick'"):
        by_hand(config=quick)


def test_a_part_of_one_unit_is_bounded_only_by_sizes():
    with pytest.raises(MPLangError, match="only if all owners share sizes"):
        by_hand(max_share=500_000)


def test_numbers_whose_sums_may_wrap_are_refused():
    with pytest.raises(MPLangError, match="numbers of 9 units have 57 bits at most"):
        by_hand(forms=((*FORM[:3], 58, *FORM[4:]), OTHER))


def test_what_waits_for_a_guard_is_no_guard_elsewhere():
    """What its owner made, revealed without the guard, is rows of units."""

    def program():
        people, _ = tables()
        one = mp.seal(made_by(0, people, mp.device("bank")(salt)(), "id", PAY), to="SP0")
        return mp.reveal(one, to="shop")

    guards, _ = guards_of(program)
    assert not any(guards.values())


def test_a_value_that_is_kept_waits_for_nothing():
    data = {**DATA, "bank": {"people": held(pa.table({"id": ["a"], "pay": [1]}), {"id": 8})}}

    def first():
        people = mp.dataset("bank", "people")
        return mp.keep(mp.seal(made_by(0, people, mp.device("bank")(salt)(), "id", PAY), to="SP0"))

    with mp.Simulator(cluster(), data=data) as sim:
        made = mp.compile(first).trace(sim)
    for label in follow(made.program).outputs[0].values():
        assert not any(source.guards for source in label.sources)


# -- attacks that told one person's number


def literal_units():
    """Return units that a coordinator makes up: one of whom all know, twenty times."""
    return np.concatenate([np.full((1, 9), 7), np.full((1, 9), 20)]).astype(np.int64)


def test_what_an_index_chooses_among_units_and_a_literal_does_not_count():
    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = made_by(0, people, drawn, "id", PAY)
        other = made_by(1, sales, mp.put("shop", drawn), "who")
        either = mp.pshfl(
            mp.pconv([other, mp.put("bank", literal_units())]), mp.put("shop", np.array(0))
        )
        either = either.ctx.place(either, either.ctx.cluster_spec.device("shop"))
        return guarded([mp.seal(x, to="SP0") for x in (one, either)], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_a_share_of_something_else_at_one_member_does_not_count():
    """Shares are linear: one of x + c beside one of x is shares of x + c."""

    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = mp.seal(made_by(0, people, drawn, "id", PAY), to="SP0")
        x = mp.seal(made_by(1, sales, mp.put("shop", drawn), "who"), to="SP0")
        y = mp.device("SP0")(lambda x, c: x + c)(x, mp.constant(literal_units()))
        mixed = mp.pconv([mp.pshfl_s(y, [0], [0]), mp.pshfl_s(x, [1], [1])])
        mixed = mixed.ctx.place(mixed, mixed.ctx.cluster_spec.device("SP0"))
        return guarded([one, mixed], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not any(guards.values())
    assert "not what a party made of a table for it" in remarks


def test_shares_of_two_secrets_do_not_count():
    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = mp.seal(made_by(0, people, drawn, "id", PAY), to="SP0")
        there = mp.put("shop", drawn)
        x, y = (mp.seal(made_by(1, sales, there, "who"), to="SP0") for _ in "ab")
        mixed = mp.pconv([mp.pshfl_s(y, [0], [0]), mp.pshfl_s(x, [1], [1])])
        mixed = mixed.ctx.place(mixed, mixed.ctx.cluster_spec.device("SP0"))
        return guarded([one, mixed], (FORM, OTHER), SUM)[1]

    guards, _ = guards_of(program)
    assert not any(guards.values())


def test_tokens_that_begin_with_private_data_do_not_count():
    """Whether anything matched told a bit of one person."""

    def program():
        people, sales = tables()
        bits = made_by(0, people, mp.device("bank")(salt)(), "id", PAY)
        begun = mp.device("bank")(lambda x: (x[1, 0] + jnp.zeros(32)).astype("uint8"))(bits)
        one = made_by(0, people, begun, "id", PAY)
        other = made_by(1, sales, mp.put("shop", np.ones(32, np.uint8)), "who")
        return guarded([mp.seal(x, to="SP0") for x in (one, other)], (FORM, OTHER), SUM)[1]

    guards, remarks = guards_of(program)
    assert not guards["people.pay"]
    assert "beside its table is made of private data" in remarks


@pytest.mark.parametrize(
    ("here", "there", "message"),
    [
        ({"side": 1}, {"side": 0}, "operand 0 of 2 is of side 1/2"),
        ({"sides": 3}, {}, "operand 0 of 2 is of side 0/3"),
        ({}, {"sides": 4}, "operand 1 of 2 is of side 1/4"),
    ],
)
def test_sides_are_those_of_the_operands(here, there, message):
    """Sides that changed places mixed columns; others than there are chose among units."""
    names = {"side": 6, "sides": 7}

    def form(base, changes):
        return tuple(
            next((v for k, v in changes.items() if names[k] == i), x) for i, x in enumerate(base)
        )

    def program():
        people, sales = tables()
        drawn = mp.device("bank")(salt)()
        one = made_by(0, people, drawn, "id", PAY, **here)
        other = made_by(1, sales, mp.put("shop", drawn), "who", **there)
        shares = [mp.seal(x, to="SP0") for x in (one, other)]
        return guarded(shares, (form(FORM, here), form(OTHER, there)), SUM)[1]

    with pytest.raises(MPLangError, match=message):
        guards_of(program)


@pytest.mark.parametrize(
    "change",
    [
        {"max_share": 1_000_000}, {"k": True}, {"wanted": (("sum", -2, "pay"),)},
        {"wanted": (("sum", 9, "pay"),)}, {"wanted": (("sum", True, "pay"),)},
        {"wanted": ("sum",)}, {"sides": (FORM[:4], OTHER)}, {"sides": (FORM, (True, *OTHER[1:]))},
        {"sides": (FORM, (-1, *OTHER[1:]))}, {"sides": ("FORM", OTHER)},
    ],
)  # fmt: skip
def test_hostile_attributes_are_refused(change):
    with pytest.raises(MPLangError):
        by_hand(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"by": (("city", ("X", 2)),)}, {"by": (("city", (("X",),)),)}, {"by": (("city", ()),)},
        {"by": (("city", ("X", "X")),)}, {"by": (("debt", (1, 2)),)}, {"bits": -1}, {"bits": True},
        {"bounded": 1}, {"functions": (*PAY, *PAY)}, {"functions": (("pay", ("median",)),)},
        {"functions": (("pay", ("units",)),)}, {"rows": 1 << 40}, {"side": 2},
        {"on": ("id", "pay")},
    ],
)  # fmt: skip
def test_hostile_attributes_of_units_are_refused(change):
    def program():
        people, _ = tables()
        return made_by(0, people, mp.device("bank")(salt)(), "id", PAY, **change)

    with pytest.raises(MPLangError):
        guards_of(program)
