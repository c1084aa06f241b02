"""Faults in what an op among parties declares: the kit finds them, and names op, link and fix."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere

OP = """
import numpy as np

import mplang_core as mp
from mplang_core.ext import Communicates, Level, Message, OpDef, context_of, op_defs
from mplang_testing import PartyOpSuite, PartySample


class Ring(Communicates):
    def messages(self, op, world):
        links = [(rank, (rank + 1) % len(world)) for rank in world]
        return {messages}


op_defs.add(
    "fault.pass_on",
    OpDef("fault.pass_on", lambda op, world: [op.inputs[0].type], Level.PARTY,
          interfaces={interfaces}),
    provider="faults",
)


@mp.kernel("fault.pass_on")
def pass_on(ctx, x):
    comm, key = ctx.interpreter.communicator, ctx.key
    me, n = comm.rank, comm.world_size
    comm.send((me + 1) % n, key, x)
    {kernel}
    return comm.recv((me - 1) % n, key)


def use(x):
    return context_of(x).emit("fault.pass_on", [x], {{}})[0]


class TestFaulty(PartyOpSuite):
    family = "fault"
    samples = {samples}
"""
RIGHT = {
    "messages": "[Message(a, b, 0) for a, b in links]",
    "interfaces": "[Ring()]",
    "kernel": "pass",
    "samples": '(PartySample("fault.pass_on", use, np.arange(3)),)',
}
DOES_IT = "sends_the_messages"


def op(**changes):
    return OP.format(**{**RIGHT, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"messages": "[*(Message(a, b, 0) for a, b in links), Message(0, 2, 0, when='if odd')]"},
        {"samples": '(PartySample("fault.pass_on", lambda x: use(use(x)), np.arange(3)),)'},
    ],
    ids=["right", "on a condition", "twice"],
)
def test_without_a_fault_all_pass(run, changes):
    assert run(op(**changes)).parseoutcomes() == {"passed": 4}


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
