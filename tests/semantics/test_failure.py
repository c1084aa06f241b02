"""What others may know of an error that ended a party's run."""

from __future__ import annotations

import pytest
import toy

import mplang_core as mp
from mplang_core.errors import KernelError, PartyError, RunError, VerifyError
from mplang_core.runtime import interpreter
from mplang_core.simp import Failure


def test_only_texts_of_our_own_leave_the_party():
    assert "secret" not in str(Failure.of(ValueError("a secret")))
    assert Failure.of(KernelError("a public text")).text == "a public text"


def test_the_host_raises_what_the_party_told():
    error = KernelError("it broke")
    error.op, error.location = "toy.add", "prog.py:3"
    made = Failure.of(error).error()
    assert (type(made), str(made), made.op, made.location) == (
        KernelError, "it broke", "toy.add", "prog.py:3",
    )  # fmt: skip
    assert type(Failure.of(VerifyError("wrong")).error()) is VerifyError


@pytest.mark.parametrize("kind", ["PartyError", "SystemExit", "MPLangError", "__file__", "nothing"])
def test_what_no_program_ends_with_is_a_plain_error(kind):
    assert type(Failure(kind, "text").error()) is RunError
    assert not isinstance(Failure(kind, "text").error(), PartyError)


def test_a_party_is_in_the_op_around_a_region_until_the_first_op_in_it(simulate, monkeypatch):
    places = []

    def execute(plan, inputs, ctx, listener=None, run=interpreter.execute):
        if not hasattr(ctx, "step") and ctx.interpreter.where(ctx.run) is not None:
            places.append(ctx.interpreter.where(ctx.run).opcode)
        return run(plan, inputs, ctx, listener)

    def program(x):
        return mp.while_loop(
            lambda i: mp.invoke(toy.less, i, x), lambda i: mp.invoke(toy.add, i, i), mp.constant(1)
        )

    sim = simulate(1)
    monkeypatch.setattr(interpreter, "execute", execute)
    mp.fetch(sim, mp.evaluate(sim, program, 3))
    assert {"func.call", "simp.while_loop", "simp.pcall_static"} <= set(places)
