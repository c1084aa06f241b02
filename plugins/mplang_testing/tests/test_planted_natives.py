"""Native services that believe what they get, or keep what a run left, are caught by the kit."""

from __future__ import annotations

import pytest
from planted_package import told_of

SERVICES = """
import numpy as np

from mplang_core.ext import RunError


class Plain:
    '''Adds arrays of two parties, and holds the sum.'''

    def __init__(self, party):
        self.party, self.held = party, {}

    def call(self, run, method, args, buffers):
        if method == "sum":
            return self.sum(run, args, buffers)
        if method == "fetch":
            return self.fetch(run, args, buffers)
        raise RunError(f"no method {method}")

    def sum(self, run, args, buffers):
        self.check(args, buffers)
        comm, key = self.party.communicator, f"{run}/{args['as']}"
        mine = np.frombuffer(self.taken(buffers[0]), np.float64)
        comm.send(1 - comm.rank, key, mine)
        self.held[run, args["as"]] = mine + comm.recv(1 - comm.rank, key)
        return {"count": mine.size}, ()

    def taken(self, buffer):
        return bytes(buffer)

    def check(self, args, buffers):
        if args.keys() != {"as", "count"} or any(type(each) is not int for each in args.values()):
            raise RunError("expected as and count")
        if len(buffers) != 1 or buffers[0].nbytes != 8 * args["count"]:
            raise RunError("expected one buffer")

    def fetch(self, run, args, buffers):
        try:
            return {}, [self.held[run, args["as"]].tobytes()]
        except KeyError:
            raise RunError("no such sum") from None

    def end_run(self):
        self.held.clear()


class Buffers(Plain):
    '''Does not look at the buffers.'''

    def check(self, args, buffers):
        super().check(args, [memoryview(bytes(16))])


class Fields(Plain):
    '''Ignores what it does not know.'''

    def check(self, args, buffers):
        super().check({name: args.get(name) for name in ("as", "count")}, buffers)


class Methods(Plain):
    '''Takes each other method for one of its own.'''

    def call(self, run, method, args, buffers):
        return self.fetch(run, args, buffers) if method == "fetch" else self.sum(run, args, buffers)


class Errors(Plain):
    '''Lets errors of others out.'''

    def check(self, args, buffers):
        assert args.keys() == {"as", "count"}
        assert len(buffers) == 1
        super().check(args, buffers)


class Runs(Plain):
    '''Gives what one run left to another.'''

    def end_run(self):
        pass

    def fetch(self, run, args, buffers):
        return super().fetch(next(iter(self.held), (run,))[0], args, buffers)


class Answers(Plain):
    '''Answers with what MessagePack has not.'''

    def sum(self, run, args, buffers):
        told, made = super().sum(run, args, buffers)
        return {"count": np.int64(told["count"])}, made


class Waits(Plain):
    '''Sends before it has looked at what it got.'''

    def sum(self, run, args, buffers):
        comm, key = self.party.communicator, f"{run}/{args['as']}|early"
        comm.send(1 - comm.rank, key, 1)
        comm.recv(1 - comm.rank, key)
        return super().sum(run, args, buffers)
"""
TESTS = """
import numpy as np
from mplang_testing import NativeCall, NativeSuite

import mplang_core as mp


class Base:
    def calls(self, rank, run):
        call = NativeCall("sum", {"as": 1, "count": 2}, [np.float64([rank, 2]).tobytes()])
        return [call]

    def refers(self, rank, run):
        return NativeCall("fetch", {"as": 1})
"""
CLASS = """

@mp.simple_op("native_{0}.op")
def op(x: mp.TensorType) -> mp.TensorType:
    return x


mp.kernel("native_{0}.op", native="native_{0}")(lambda ctx, x: x)


class Test{1}(Base, NativeSuite):
    family = "native_{0}"
"""
CAUGHT = {
    "Buffers": ("wrong_calls_are_refused", "with a buffer too many"),
    "Fields": ("wrong_calls_are_refused", "with a field that there is not"),
    "Methods": ("wrong_calls_are_refused", "with a method that there is not"),
    "Errors": ("wrong_calls_are_refused", "AssertionError"),
    "Runs": ("what_a_run_left_is_of_no_other_run", "amid a run, for another one"),
    "Answers": ("right_calls_are_answered", "is not plain data"),
    "Waits": ("a_call_that_lacks_a_field_is_no_crash", "KeyError: 'as'"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what pytest prints of tests of the kit that run on the services."""
    names = ["Plain", *CAUGHT]
    points = [f"native_{name.lower()} = faults:{name}" for name in names]
    classes = [CLASS.format(name.lower(), name) for name in names]
    return told_of(
        tmp_path_factory.mktemp("faults"),
        "\n".join(["[mplang.native]", *points]),
        SERVICES,
        TESTS + "".join(classes),
    )


@pytest.mark.parametrize("name", CAUGHT)
def test_a_faulty_service_is_caught(told, name):
    test, text = CAUGHT[name]
    parts = [part for part in told.split("\n____") if f" Test{name}.test_{test}" in part]
    assert parts, told[-4000:]
    assert text in parts[0]


def test_one_without_faults_passes(told):
    assert "TestPlain" not in told, told[-4000:]
