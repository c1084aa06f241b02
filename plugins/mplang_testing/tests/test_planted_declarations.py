"""Faults in what local ops declare beside results: the kit finds them, and names op and data."""

from __future__ import annotations

import pytest
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = [  # what is faulty gives other results elsewhere
    pytest.mark.once,
    pytest.mark.needs("tables"),
]

OP = (
    HEAD
    + '''
import pyarrow as pa
from mplang_analysis import Interval, OpRanges, RangeRule
from mplang_tables import arrow

from mplang_core.ext import Effects

PEOPLE = mp.TableType((("id", "int64"), ("pay", "int64")))
TABLE = pa.table({"id": [1], "pay": [2]}, schema=arrow.schema(PEOPLE))


def ranges(op, operands):
    return OpRanges([Interval(0, {most})])


@mp.simple_op(
    "fault.add", reads={reads}, total={total}, effects=Effects.{effects},
    interfaces=[RangeRule(ranges)],
)
def add(x: TensorType, t: mp.TableType) -> TensorType:
    """Adds."""
    return x


@mp.kernel("fault.add")
def kernel(ctx, x, t):
    {kernel}
    return x + np.int64({more})


class TestFaulty(KernelSuite):
    family = "fault"
    samples = (Sample("fault.add", X, Of(PEOPLE, TABLE), random={random}),)

    def make(self, parties):
        spec = mp.ClusterSpec.simple(parties)
        people = {"people": {"id": [1, 2], "pay": [3, 4]}}
        return Simulator(spec, data={node.name: people for node in spec.nodes})
'''
)
RIGHT = {
    "most": "3",
    "reads": "()",
    "total": "True",
    "effects": "NONE",
    "kernel": "pass",
    "more": "1",
    "random": "False",
}


def op(**changes):
    source = OP
    for name, value in {**RIGHT, **changes}.items():
        source = source.replace(f"{{{name}}}", value)
    return source


READ = 'ctx.interpreter.data.read("people", PEOPLE, (), perhaps=False)'
SEND = """me = ctx.interpreter.rank
    if me: ctx.interpreter.communicator.send(0, ctx.key, x)
    elif ctx.interpreter.world_size > 1: ctx.interpreter.communicator.recv(1, ctx.key)"""
COLUMNS = '("data set people.id", "data set people.pay")'


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernel": READ, "reads": COLUMNS},
        {"effects": "FRESH", "random": "True", "more": "np.random.default_rng().integers(2)"},
    ],
    ids=["right", "reads", "fresh"],
)
def test_without_a_fault_all_pass(run, changes):
    assert run(op(**changes)).parseoutcomes().keys() == {"passed"}


@pytest.mark.parametrize(
    ("changes", "test", "lines"),
    [
        (
            {"kernel": READ},
            "reads_what",
            [
                "fault.add reads data set people.id, and does not say so",
                "expected: reads=() of the data of its party",
                "got: *data set people.id, data set people.pay",
            ],
        ),
        (
            {"kernel": READ, "reads": '("data set people.id",)'},
            "reads_what",
            ["fault.add reads data set people.pay, and does not say so"],
        ),
        (
            {"kernel": "open('/no_such_folder/file.csv') if ctx else 0", "total": "False"},
            "reads_what",
            ["fault.add reads the file /no_such_folder/file.csv, and does not say so"],
        ),
        (
            {"kernel": SEND},
            "one_party_sends_nothing",
            [
                "fault.add sends a message from party 1 to party 0",
                "expected: none, as execution_model='single_rank' says",
            ],
        ),
        (
            {"effects": "FRESH"},
            "effects_are",
            ["fault.add declares Effects.FRESH, and Sample(*) has random=False"],
        ),
        (
            {"random": "True", "more": "np.random.default_rng().integers(2)"},
            "effects_are",
            ["fault.add declares Effects.NONE, and Sample(*) has random=True"],
        ),
        (
            {"most": "2"},
            "in_the_ranges",
            [
                "result 0 of Sample(*) is outside of the interval that fault.add tells",
                "got: *numbers from 1 to 3",
            ],
        ),
        (
            {"kernel": "t['id'].to_pylist()[0]"},
            "is_total",
            ["Sample(*) fails, and fault.add declares total=True", "operand 1 of no rows"],
        ),
        (
            {"kernel": "1 // int((x < 1 << 61).all())"},
            "is_total",
            ["*a result for tensors of 9223372036854775807"],
        ),
        (
            {"kernel": "1 // int(len(set(x % 7)) < 3 or max(abs(x)) < 9)"},
            "is_total",
            ["*a result for operand 0 of random bits"],
        ),
    ],
)
def test_an_op_that_does_what_it_does_not_say(caught, changes, test, lines):
    caught(op(**changes), test, *lines)
