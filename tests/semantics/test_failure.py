"""Where a party is while it runs."""

from __future__ import annotations

import toy

import mplang_core as mp
from mplang_core.ext import op_of
from mplang_core.runtime import interpreter


def test_a_party_is_in_the_op_around_a_region_until_the_first_op_in_it(simulate, monkeypatch):
    places = []

    def execute(plan, inputs, ctx, listener=None, run=interpreter.execute):
        op = op_of(ctx.interpreter.running.get(ctx.run))
        if not hasattr(ctx, "step") and op is not None:
            places.append(op.opcode)
        return run(plan, inputs, ctx, listener)

    def program(x):
        return mp.while_loop(
            lambda i: mp.invoke(toy.less, i, x), lambda i: mp.invoke(toy.add, i, i), mp.constant(1)
        )

    sim = simulate(1)
    monkeypatch.setattr(interpreter, "execute", execute)
    mp.fetch(sim, mp.evaluate(sim, program, 3))
    assert {"func.call", "simp.while_loop", "simp.pcall_static"} <= set(places)
