"""Ops that open shares and do not say who can change the result: the kit finds them."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = [  # what is faulty gives other results elsewhere
    pytest.mark.once,
    pytest.mark.needs("tables"),
]

HALF = (
    HEAD
    + """
from dataclasses import dataclass
from typing import ClassVar

from mplang_analysis import ChangeRule, Changes
from mplang_core import Form, Mask
from mplang_core.ext import Codec, Level, OpDef, codecs, context_of, op_defs, type_classes


@dataclass(frozen=True)
class Half(mp.BaseType):
    name: ClassVar[str] = "fault.half"
    form: ClassVar[Form] = Form.SHARE

    def params(self):
        return ()

    @classmethod
    def from_params(cls, params):
        return cls()


def decoded(kind, head, data):
    {decode}
    return bytes(data[0])


if Half.name not in type_classes:
    type_classes.add(Half.name, Half, provider="faults")
    codecs.add(Half.name, Codec(lambda value: ({}, [value]), decoded), provider="faults")
A, B = b"\\1\\2\\3", b"\\0\\2\\0"
"""
)
OP = (
    HALF
    + '''

@mp.simple_op(
    "fault.join", reads=(), total=False, interfaces=[{rules}], execution_model="{model}"
)
def join({operands}) -> TensorType:
    """Joins."""
    return TensorType("u8", (3,))


@mp.kernel("fault.join")
def kernel(ctx, a, b):
    {check}
    return np.frombuffer(a, "u1") ^ np.frombuffer(b, "u1")


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.join", {given}),)
'''
)
AMONG_PARTIES = (
    HALF
    + """
op_defs.add(
    "fault.open",
    OpDef("fault.open", lambda op, world: [mp.MPType(TensorType("u8", (3,)), world)],
          Level.PARTY, interfaces=[{rules}]),
    provider="faults",
)


class TestFaulty(PartyOpSuite):
    family = "fault"
    samples = (
        PartySample("fault.open", lambda x: context_of(x).emit("fault.open", [x], {})[0],
                    Of(Half(), A)),
    )
"""
)
RIGHT = {
    "rules": 'ChangeRule(lambda op: Changes(Mask.of([0, 1]), "XOR"))',
    "model": "single_rank",
    "operands": "a: Half, b: Half",
    "given": "Of(Half(), A), Of(Half(), B)",
    "decode": "pass",
    "check": "pass",
}
NOBODY = "ChangeRule(lambda op: Changes(by=Mask()))"
CHECKED = "if sum(a + b) != 8: raise mp.errors.RunError('it was changed')"
TEST = "test_it_says_who_can_change_what_it_opens"


def op(source=OP, **changes):
    for name, value in {**RIGHT, **changes}.items():
        source = source.replace(f"{{{name}}}", value)
    return source


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rules": NOBODY, "check": CHECKED},
        {"rules": NOBODY, "decode": "if sum(data[0]) not in (6, 2): raise ValueError('changed')"},
        {"rules": "", "operands": "a: TensorType, b: TensorType", "given": "X, X"},
    ],
    ids=["declared", "noticed", "noticed by the codec", "of nothing shared"],
)
def test_an_op_that_says_it_passes(run, changes):
    outcomes = run(op(**changes), "-k", TEST).parseoutcomes()
    assert (outcomes.get("passed"), outcomes.get("failed")) == (1, None)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {"rules": ""},
            [
                "fault.join makes something plain that parties have computed together, and does "
                "not say who can change it",
                "to do: *declare ChangeRule(lambda op: Changes(parties, protocol))",
            ],
        ),
        (
            {"rules": "", "operands": "a: TensorType, b: TensorType", "given": "X, X",
             "model": "multi_party"},
            ["fault.join makes something plain that parties have computed together"],
        ),
        (
            {"rules": NOBODY},
            [
                "fault.join gives another result for a share that was changed",
                "expected: an error, as Changes(by=Mask()) says",
            ],
        ),
        (
            {"rules": NOBODY, "check": "if a[2] != 3: raise mp.errors.RunError('it was changed')"},
            ["fault.join gives another result for a share that was changed"],
        ),
    ],
    ids=["says nothing", "together", "takes a changed share", "checks a part"],
)  # fmt: skip
def test_an_op_that_does_not_say_it_or_is_wrong(caught, changes, lines):
    caught(op(**changes), TEST, *lines)


def test_an_op_among_parties_says_it_too(run, caught):
    assert run(op(AMONG_PARTIES), "-k", TEST).parseoutcomes().get("passed") == 1
    told = "fault.open makes something plain that parties have computed together"
    caught(op(AMONG_PARTIES, rules=""), TEST, told)


COMPILER = (
    HEAD
    + '''
from mplang_core import FeProgram, PFunction
from mplang_core.ext import flatten


@mp.simple_op("fault.run", reads=(), total=True, execution_model="{model}")
def run(x: TensorType) -> TensorType:
    """Does what the other one makes."""
    return x


@mp.feop(name="fault.make", execution_model="multi_party")
def make(x):
    """Makes it."""
    types = (x.base_type,)
    return FeProgram(PFunction("fault.run", types, types), flatten((x,))[1], flatten(0)[1], (x,))


@mp.kernel("fault.run")
def kernel(ctx, x):
    return x


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.make", X, parties=2),)
'''
)


@pytest.mark.parametrize("model", ["multi_party", "single_rank"])
def test_messages_that_are_not_counted_are_listed(run, caught, model):
    source, test = op(COMPILER, model=model), "costs_say"
    if model == "multi_party":
        assert run(source, "-k", test).parseoutcomes() == {"passed": 1, "deselected": ANY}
        return
    caught(
        source,
        test,
        "the messages of fault.run are not counted, and costs do not say so",
        "to do: *declare execution_model='multi_party' of the feop fault.run, too",
    )
