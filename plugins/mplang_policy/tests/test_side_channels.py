"""Rules and what others learn by sizes and durations: the rules to begin with permit neither."""

from __future__ import annotations

import ibis
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from mplang_crypto import encrypt, keygen
from mplang_policy import Rules
from mplang_policy.decision import decide_program
from mplang_policy.gate_config import GateConfig
from mplang_policy.hints import OF_SIDE_CHANNELS
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_policy.starter import starter
from mplang_spu import ShareType, SpuConfig, make_shares, run_jax
from mplang_spu.config import resolve_config
from mplang_tables import table as literal, to_tensor
from policy_testbed import BANK, NAMES, decided, names_of_bank, program_of

import mplang_core as mp
from mplang_core.ext import run_program

NUMBERS = pd.DataFrame({"n": range(100)})
ENCRYPTED = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action in [Action::"disclose", Action::"store", Action::"forward"], resource)
when { !context.discloses };
permit (principal, action == Action::"disclose", resource is Everyone)
when { context.what == "failure" };
"""
CHANNELS = """
permit (principal, action == Action::"disclose", resource)
when { ["size", "duration"].contains(context.what) };
"""


def at_bank(fn, *args, **attrs):
    return mp.device("P0")(fn)(*args, **attrs)


def people():
    return mp.dataset("bank", "people")


def sealed(t):
    """The shop gets rows that it cannot read."""
    return mp.keep(mp.put("P1", at_bank(encrypt, t, at_bank(keygen))))


def numbers():
    return at_bank(literal(NUMBERS))


def on_pay(fn):
    """Compiled code on the pay of the bank's people, whose result stays there."""
    return lambda: mp.keep(at_bank(fn, at_bank(to_tensor, at_bank(lambda t: t[["pay"]], people()),
                                               rows=3)))  # fmt: skip


def turns(x):
    return jax.lax.fori_loop(0, x[0, 0].astype(int), lambda i, a: a * 1.1, 0.0)


def branch(x):
    busy = lambda: jax.lax.fori_loop(0, 10**9, lambda i, a: a * 1.1, 0.0)  # noqa: E731
    return jax.lax.cond(x[0, 0] > 3000, busy, lambda: 0.0)


def until(x):
    return jax.lax.while_loop(lambda v: v < x[0, 0], lambda v: v + 1, 0.0)


def kept(fn):
    return lambda: mp.keep(at_bank(fn, people(), numbers()))


DURATIONS = {
    "turns of a loop": on_pay(turns),
    "while": on_pay(until),
    "branch": on_pay(branch),
    "loop in a batch": on_pay(lambda x: jax.vmap(until)(x[:, None, :])),
    "cross join": kept(lambda t, n: t.filter(t.pay > 3000).cross_join(n)),
    "inequality join": kept(lambda t, n: n.join(t, n.n < t.pay)[["n"]]),
    "equal and not": kept(lambda t, n: n.join(t, [n.n == t.id, n.n < t.pay])[["n"]]),
    "filter above": kept(lambda t, n: n.join(t, n.n == t.id).filter(lambda r: r.n < r.pay)),
    "repeat": kept(lambda t, n: t.mutate(s=t.city.repeat(t.id))),
    "unnest": kept(lambda t, n: t.select(s=t.city.split(",").unnest())),
    "median of a window": kept(
        lambda t, n: t.mutate(m=t.pay.median().over(ibis.window(order_by="id")))
    ),
    "list for each row": kept(lambda t, n: t.filter(n.n.collect().as_scalar().contains(t.id))),
    "text of a list": kept(
        lambda t, n: t.mutate(s=t.city.split("").join("-" * 63).split("").join("-" * 63))
    ),
    "pattern": kept(lambda t, n: t.filter((t.pay > 5).ifelse("a" * 90, "").like("%a_%a_%a_%b"))),
}
SIZES = {
    "encrypted table": lambda: sealed(people()),
    "encrypted filter": lambda: sealed(at_bank(lambda t: t.filter(t.pay > 3000), people())),
    "encrypted groups": lambda: sealed(
        at_bank(lambda t: t.group_by("city").agg(n=t.count()), people())
    ),
    "relayed": lambda: mp.keep(
        mp.put("P2", mp.put("P1", at_bank(encrypt, people(), at_bank(keygen))))
    ),
}
NEITHER = {
    "fixed turns": on_pay(lambda x: jax.lax.fori_loop(0, 9, lambda i, a: a * 1.1, x)),
    "where": on_pay(lambda x: jnp.where(x > 3, x, 0)),
    "patterns": kept(lambda t, n: t.filter(t.city.like("%a%b%c%") | t.city.ilike("%a_b%"))),
    "equal columns": kept(lambda t, n: n.join(t, n.n == t.id)[["n"]]),
    "encrypted tensor": lambda: sealed(
        at_bank(to_tensor, at_bank(lambda t: t[["pay"]], people()), rows=3)
    ),
}


def by_starter(fn):
    """Return what the rules that `mplang policy init` writes refuse, first."""
    gate = GateConfig(policy="bank.cedar", log="bank.db")
    owner = Owner("bank", ("analyst",), gate, names_of_bank(), BANK, "")
    rules = Rules.of({"bank.cedar": starter(owner)}, names_of_bank())
    asked = asked_of(program_of(fn), NAMES, "bank", "analyst", "production")
    return decide_program(rules, asked)


@pytest.mark.parametrize("name", DURATIONS)
def test_a_duration_that_depends_on_data_is_refused(name):
    for rules in (None, ENCRYPTED):
        decision = (
            by_starter(DURATIONS[name]) if rules is None else decided(DURATIONS[name], rules)[0]
        )
        assert [each.request.context["what"] for each in decision.refused] == ["duration"]
        assert list(decision.notes) == [OF_SIDE_CHANNELS["duration"]]
    assert decided(DURATIONS[name], ENCRYPTED + CHANNELS)[0].allowed


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_depends_on_data_is_refused(name):
    decision, text = decided(SIZES[name], ENCRYPTED)
    assert {each.request.context["what"] for each in decision.refused} == {"size"}
    assert "that shop gets plain table<" in text
    assert "(size) at " in text
    assert "a table's size discloses its number of rows" in text
    assert "single rows" not in text
    assert decided(SIZES[name], ENCRYPTED + CHANNELS)[0].allowed
    assert "size" in {each.request.context["what"] for each in by_starter(SIZES[name]).refused}


@pytest.mark.parametrize("name", NEITHER)
def test_what_types_bound_is_permitted(name):
    assert decided(NEITHER[name], ENCRYPTED)[0].allowed


def handed_on(differs):
    """The clinic gets the bank's share of a sum with what an SPU takes for public."""
    pay = at_bank(to_tensor, at_bank(lambda t: t[["pay"]], people()), rows=3)
    other = mp.constant(np.zeros((3, 1)), parties=1)
    public = mp.pconv([pay if differs else mp.constant(np.ones((3, 1)), parties=0), other])
    config = resolve_config(SpuConfig(), mp.Mask.all(2))
    kind = ShareType.of(public.base_type, config)
    pieces = run_program(make_shares(mp.constant(np.ones((3, 1)), parties=0), share=kind), 0)
    share = mp.pconv([pieces[0], mp.pshfl_s(pieces[1], 1, [0])])
    made = run_jax(lambda s, n: s * 0 + n, mp.FeSignature((kind, public.base_type)), config=config)
    (found,) = mp.peval(made.pfunc, [share, public], mp.Mask.all(2))
    return mp.keep(mp.pshfl_s(found, 2, [0]))


def test_what_an_spu_takes_as_public_is_no_way_out_by_a_share():
    refused = by_starter(lambda: handed_on(True)).refused
    rows = {(each.request.resource.id, each.request.context["what"]) for each in refused}
    assert rows == {("shop", "reveal"), ("clinic", "move")}
    assert by_starter(lambda: handed_on(False)).allowed
