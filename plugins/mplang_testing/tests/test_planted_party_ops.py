"""Faults in what an op among parties declares: the kit finds them, and names op, link and fix."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere

OP = """
import numpy as np

import mplang_core as mp
from mplang_core.ext import (
    Communicates, Effects, Forwards, Level, Message, OpDef, PublicLiteral, context_of, op_defs,
)
from mplang_testing import PartyOpSuite, PartySample


class Ring(Communicates):
    def messages(self, op, world):
        links = [(rank, (rank + 1) % len(world)) for rank in world]
        return {messages}


class Copy(Ring, Forwards):
    def sources(self, op, output):
        return {sources}


class Literal(PublicLiteral):
    def literal(self, op):
        return np.arange(3)


op_defs.add(
    "fault.pass_on",
    OpDef("fault.pass_on", lambda op, world: [op.inputs[0].type], Level.PARTY,
          interfaces={interfaces}, effects=Effects.{effects}, total={total}),
    provider="faults",
)


@mp.kernel("fault.pass_on")
def pass_on(ctx, x):
    comm, key = ctx.interpreter.communicator, ctx.key
    me, n = comm.rank, comm.world_size
    comm.send((me + 1) % n, key, x)
    {kernel}
    got = comm.recv((me - 1) % n, key)
    return {result}


def use(x):
    return context_of(x).emit("fault.pass_on", [x], {{}})[0]


class TestFaulty(PartyOpSuite):
    family = "fault"
    samples = {samples}
"""
RIGHT = {
    "messages": "[Message(a, b, 0) for a, b in links]",
    "interfaces": "[Ring()]",
    "sources": "(0,)",
    "effects": "ANY",
    "total": "False",
    "kernel": "pass",
    "result": "got",
    "samples": '(PartySample("fault.pass_on", use, np.arange(3)),)',
}
DOES_IT = "sends_the_messages"
TELLS = "messages_depend_on"
COPY = "forwards_is_a_copy"
DEPENDS = "results_depend"


def op(**changes):
    return OP.format(**{**RIGHT, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "messages": "[*(Message(a, b, 0) for a, b in links), "
            "Message(0, 2, 0, when='if asked for')]"
        },
        {"samples": '(PartySample("fault.pass_on", lambda x: use(use(x)), np.arange(3)),)'},
        {"interfaces": "[Copy()]", "effects": "NONE", "total": "True"},
        {"effects": "FRESH", "result": "got + np.random.default_rng().integers(9, size=3)"},
    ],
    ids=["right", "on a condition", "twice", "all declared", "fresh"],
)
def test_without_a_fault_all_pass(run, changes):
    assert run(op(**changes)).parseoutcomes() == {"passed": 11}


@pytest.mark.parametrize(
    ("changes", "test", "lines"),
    [
        (
            {"messages": "[Message(a, b, 0) for a, b in links[1:]]"},
            DOES_IT,
            [
                "fault.pass_on sends a message from party 0 to party 1 that it does not declare",
                "expected: as many as its interface Communicates declares for this link: 0",
                "got: *1 on the link from party 0 to party 1",
                "to do: *have messages() of fault.pass_on return a Message(0, 1, ?) for each",
            ],
        ),
        ({"messages": "[]"}, f"{DOES_IT} and launch", ["party 1 that it *declare, in launch mode"]),
        (
            {"messages": "[Message(b, a, 0) for a, b in links]"},
            DOES_IT,
            ["fault.pass_on sends a message from party 0 to party 1 that it does not declare"],
        ),
        (
            {"kernel": 'comm.send((me + 1) % n, key + "again", x)'},
            DOES_IT,
            ["expected: *link: 1", "got: *2 on the link from party 0 to party 1"],
        ),
        (
            {"kernel": 'comm.send((me + 2) % n, key + "?", True)'},
            DOES_IT,
            ["fault.pass_on sends a message from party 0 to party 2 that it does not declare"],
        ),
        (
            {"messages": "[*(Message(a, b, 0) for a, b in links), Message(0, 2, 0)]"},
            DOES_IT,
            [
                "fault.pass_on declares a message from party 0 to party 2 that it does not send",
                "expected: as many as are declared without a condition for this link: 1",
                "got: *0 on the link from party 0 to party 2",
                "to do: *send it, or remove Message(0, 2, ?) from messages() of fault.pass_on",
            ],
        ),
        (
            {"messages": "[*(Message(a, b, 0) for a, b in links), Message(0, 0, 0)]"},
            DOES_IT,
            ["fault.pass_on declares a message from party 0 to party 0 that it does not send"],
        ),
        (
            {
                "messages": "[Message(a, b, 0) for a, b in links * 3]",
                "kernel": """comm.send((me + 1) % n, key + ".", x)
    seen = comm.recv((me - 1) % n, key + ".")
    comm.send((me + 1) % n, key + ":", np.zeros(3 + (seen[0] > 9)))
    comm.recv((me - 1) % n, key + ":")""",
            },
            TELLS,
            [
                "fault.pass_on sends other messages from party 1 to party 2 where operand 0 of "
                "party 0 is 9223372036854775807, and does not say so",
                "expected: messages of these sizes*24, 24, 24*",
                "got: *24, 24, 32*",
                "to do: *or name operand 0 in a Message from party 1 to party 2",
            ],
        ),
        (
            {"interfaces": "[]"},
            DOES_IT,
            ["fault.pass_on does not declare its messages", "to do: *add the interface to its O"],
        ),
        (
            {"kernel": 'raise mp.errors.RunError("it is too cold")'},
            DOES_IT,
            ["PartySample('fault.pass_on') does not run", "got: *it is too cold*"],
        ),
        (
            {"result": "got.astype(np.int32)"},
            DOES_IT,
            [
                "the kernel of PartySample('fault.pass_on') breaks the promise of its op",
                "got: *fault.pass_on at *: expected i64[[]3], got i32[[]3]*",
            ],
        ),
        (
            {"samples": '(PartySample("fault.pass_on", lambda x: x, np.arange(3)),)'},
            DOES_IT,
            ["PartySample('fault.pass_on') does not use its op"],
        ),
        (
            {"samples": "()"},
            "a_sample_of_every",
            ["the samples do not fit*", "*add *fault.pass_on"],
        ),
        (
            {"samples": '(PartySample("simp.converge", use, np.arange(3)),)'},
            "a_sample_of_every",
            ["to do: *add ?'fault.pass_on'?, remove ?'simp.converge'?;"],
        ),
    ],
)
def test_an_op_among_parties_that_sends_other_messages(caught, changes, test, lines):
    caught(op(**changes), test, *lines)


@pytest.mark.parametrize(
    ("changes", "test", "lines"),
    [
        (
            {"result": "x", "interfaces": "[Copy()]"},
            COPY,
            [
                "fault.pass_on gives party 0 something else than it forwards",
                "expected: output 0 is a copy of operand 0 of party 2, as its interface Forwards "
                "says by sources() = (0,) and its messages",
                "got: *",
                "to do: *correct sources() of fault.pass_on, or messages()",
            ],
        ),
        (
            {"result": "np.where(got == 0, 1, got)", "interfaces": "[Copy()]", "sources": "()"},
            COPY,
            ["output 0 is a copy of nothing that reaches it"],
        ),
        (
            {"result": "got if abs(got).max() < 9 else 1 / 0", "interfaces": "[Copy()]"},
            COPY,
            ["fault.pass_on* does not run with other values to forward"],
        ),
        (
            {"messages": "[Message(a, b, None, mp.TensorType('i64', (3,))) for a, b in links[:0]]"},
            DEPENDS,
            [
                "fault.pass_on makes output 0 at party 1 of operand 0 of party 0, and does not",
                "expected: what depends on operand 0 of party 1 alone, as its messages, interf",
                "got: *another value when operand 0 of party 0 changes",
            ],
        ),
        (
            {"messages": "[Message(a, b, 7) for a, b in links]"},
            DOES_IT,
            ["messages() of fault.pass_on names operand 7", "expected: one of 1 operands"],
        ),
        (
            {"messages": "[Message(a, b, 0, when='if it rains') for a, b in links]"},
            DOES_IT,
            ["messages() of fault.pass_on names the condition 'if it rains'", "*mplang.words"],
        ),
        (
            {"interfaces": "[Copy()]", "sources": "(7,)"},
            COPY,
            ["*output 0, i64?3?@{0, 1, 2}, is a copy of operand 7, which is not there*"],
        ),
        (
            {"messages": "[Message(a, b + 1, 0) for a, b in links]"},
            DOES_IT,
            ["messages() of fault.pass_on names a message from party 1 to party 3"],
        ),
        (
            {"effects": "NONE", "result": "got + np.random.default_rng().integers(1 << 60)"},
            "effects_are_those",
            ["fault.pass_on gives other results each time", "expected: *Effects.NONE says"],
        ),
        (
            {"effects": "FRESH"},
            "effects_are_those",
            ["fault.pass_on gives the same in 41 runs", "expected: *Effects.FRESH says"],
        ),
        (
            {"total": "True", "result": "got if abs(got).max() < 1 << 60 else 1 / 0"},
            "total_never_fails",
            [
                "PartySample('fault.pass_on') fails, and fault.pass_on declares total=True",
                "expected: a result for operand 0 of 9223372036854775807",
            ],
        ),
        (
            {"interfaces": "[Literal()]", "result": "got * 0"},
            "a_literal_is_the_one",
            ["fault.pass_on gives another value than its interface PublicLiteral"],
        ),
    ],
)
def test_an_op_among_parties_that_does_something_else(caught, changes, test, lines):
    caught(op(**changes), test, *lines)
