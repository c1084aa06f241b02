"""Faults in passes, analyses, admission checks, device kinds and attributes: the kit finds each.

All of them are in one package, which a process of its own finds by entry points, as others do.
"""

from __future__ import annotations

import pytest
from planted_package import told_of

ENTRIES = """
[mplang.frontends]
fault = faults

[mplang.passes]
fault_results = faults
fault_seed = faults
fault_in_place = faults
fault_discloses = faults
fault_inputs = faults

[mplang.analyses]
fault_order = faults:order
fault_fails = faults:fails
fault_in_place = faults:in_place
fault_columns = faults:columns
fault_nan = faults:nan
fault_lazy = faults:Lazy.of

[mplang.admission]
fault_text = faults:Text
fault_fails = faults:Fails
fault_no_model = faults:NoModel
fault_inputs = faults:Inputs
fault_one_party = faults:OneParty
fault_top_level = faults:TopLevel
"""

FAULTS = '''
from dataclasses import dataclass

import numpy as np

import mplang_core as mp
from mplang_analysis import Report, TextTable
from mplang_core.ext import (
    DeviceKind, Dialect, Graph, Operation, StrictModel, Transfer, Value, hookimpl,
)

ONE = mp.MPType(mp.TensorType("i64"), mp.Mask.of(0))


def _with(program, op):
    """Return a program with another op at its beginning, whose result nobody uses."""
    graph = program.graph
    made = Graph(graph.inputs, [op, *graph.ops], graph.outputs)
    return mp.Program(program.name, program.mask, made)


def _constant(number, kind=ONE):
    attrs = {"parties": kind.pmask, "value": np.asarray(number)}
    return Operation("simp.constant", (), (Value(kind),), attrs)


def fault_results(program):
    """Gives other numbers."""
    ops = list(program.graph.ops)
    for i, op in enumerate(ops):
        if op.opcode == "simp.constant":
            other = {**op.attrs, "value": np.zeros_like(op.attrs["value"])}
            ops[i] = Operation(op.opcode, op.inputs, op.outputs, other, op.regions, op.location)
    graph = Graph(program.graph.inputs, ops, program.graph.outputs)
    return mp.Program(program.name, program.mask, graph)


def fault_seed(program):
    """Depends on the hashes of strings."""
    return _with(program, _constant(hash("a") % 1000))


def fault_in_place(program):
    """Changes what it is given."""
    program.graph.ops.insert(0, _constant(1))
    return program


def fault_discloses(program):
    """Sends what party 0 has to all others."""
    held = [v for v in program.graph.outputs if v.type.pmask is not None and 0 in v.type.pmask]
    if not held or len(program.mask) == 1:
        return program
    routing = tuple((rank, 0) for rank in program.mask if rank)
    to = mp.Mask.from_ranks([rank for rank, _ in routing])
    kind = mp.MPType(held[0].type.base, to)
    attrs = {"routing": routing}
    op = Operation("simp.shuffle_static", (held[0],), (Value(kind),), attrs)
    graph = program.graph
    made = Graph(graph.inputs, [*graph.ops, op], graph.outputs)
    return mp.Program(program.name, program.mask, made)


def fault_inputs(program):
    """Knows programs without inputs only; the simulator applies it to those of other tests."""
    assert program.name != "random_program" or not program.graph.inputs
    return program


@hookimpl
def mplang_passes():
    return [fault_results, fault_seed, fault_in_place, fault_discloses, fault_inputs]


class Found(Report):
    def __init__(self, words):
        self.words = words

    def tables(self):
        return [TextTable("words", ["word"], [[word] for word in self.words])]

    def to_dict(self):
        return {"words": list(self.words)}


def order(program):
    """Lists what comes from a set."""
    return Found(list({"one", "two", "three", "four", "five", "six", "seven", "eight"}))


def fails(program):
    """Knows a few ops only."""
    return Found([{"simp.constant": "a constant"}[op.opcode] for op in program.graph.walk()])


def in_place(program):
    """Counts by removing."""
    while program.graph.ops:
        program.graph.ops.pop()
    return Found([])


def columns(program):
    """Has an escape sequence in a name of a column, put there afterwards."""
    table, report = TextTable("words", ["word"], [["one"]]), Found(["one"])
    table.columns[0] = "\\x1b[31mword"
    report.tables = lambda: [table]
    return report


def nan(program):
    """Counts what is none."""
    report = Found(["one"])
    report.to_dict = lambda: {"share": float("nan")}
    return report


class Lazy(Found):
    @staticmethod
    def of(program):
        """Fails when it is printed."""
        return Lazy(["one"])

    def rich(self, drawings=True):
        return self

    def __rich_console__(self, console, options):
        raise KeyError("no column")


class Inputs(StrictModel):
    def refusals(self, submission):
        return [{False: "no"}[bool(submission.program.graph.inputs)]]


class OneParty(StrictModel):
    def refusals(self, submission):
        return [{0: "no"}[submission.party]]


class TopLevel(StrictModel):
    def refusals(self, submission):
        ops = [op.opcode for op in submission.program.graph.ops]
        return ["no"] if "simp.shuffle_static" in ops else []


class Text(StrictModel):
    def refusals(self, submission):
        return "never"


class Fails(StrictModel):
    def refusals(self, submission):
        return [{0: "no"}[len(submission.program.mask)]]


class NoModel:
    def __init__(self, **fields):
        pass

    def refusals(self, submission):
        return []


def hand_on(value, src, dst):
    """Send the plain value to the members, whatever the kind says of its form."""
    holder = next(iter(value.pmask))
    to = dst.mask if dst is not None else value.ctx.mask
    return mp.pshfl_s(value, to, [holder] * len(to))


@hookimpl
def mplang_devices():
    other = DeviceKind("FAULT_PLAIN", mp.Form.PLAIN, doc="Another plain kind.")
    more = Transfer("FAULT_OTHER", "FAULT_PLAIN", hand_on, "auto")
    ways = [
        Transfer("PPU", "FAULT", hand_on, "auto"),
        Transfer("party", "FAULT", hand_on, "auto"),
        Transfer("FAULT", "PPU", hand_on, "put"),
        Transfer("FAULT", "party", hand_on, "reveal"),
    ]
    return [
        DeviceKind("FAULT", mp.Form.SHARE, members=(2, 2), transfers=ways, doc="Open."),
        DeviceKind("FAULT_OTHER", mp.Form.SHARE, members=(2, 2), transfers=[more], doc="Open."),
        other,
    ]


@dataclass(frozen=True)
class Money(mp.Attribute):
    name = "fault.money"
    cents: int

    def params(self):
        return (self.cents // 100,)

    @classmethod
    def from_params(cls, params):
        (whole,) = params
        if type(whole) is not int:
            raise ValueError("whole")
        return cls(whole * 100)


@hookimpl
def mplang_dialects():
    return [Dialect("fault", attributes=[Money])]
'''

TESTS = """
import faults
from hypothesis import Phase, settings, strategies as st
from mplang_testing import *

import mplang_core as mp

settings.register_profile("planted", phases=[Phase.generate])  # no fault is made smaller
settings.load_profile("planted")


class TestResults(PassSuite):
    name = "fault_results"


class TestSeed(PassSuite):
    name = "fault_seed"


class TestPassInPlace(PassSuite):
    name = "fault_in_place"


class TestDiscloses(PassSuite):
    name = "fault_discloses"


class TestPassInputs(PassSuite):
    name = "fault_inputs"


class TestNoPass(PassSuite):
    name = "fault_that_is_not_there"


class TestOrder(AnalysisSuite):
    name = "fault_order"


class TestFails(AnalysisSuite):
    name = "fault_fails"


class TestAnalysisInPlace(AnalysisSuite):
    name = "fault_in_place"


class TestColumns(AnalysisSuite):
    name = "fault_columns"


class TestNan(AnalysisSuite):
    name = "fault_nan"


class TestLazy(AnalysisSuite):
    name = "fault_lazy"


class TestManyPrograms(AnalysisSuite):
    name = "costs"
    examples = 300


class Refuses(AdmissionSuite):
    admitted = (lambda: mp.constant(1),)
    refused = {"no": lambda: mp.constant(1)}


class TestText(Refuses):
    name = "fault_text"


class TestCheckInputs(Refuses):
    name = "fault_inputs"


class TestOneParty(Refuses):
    name = "fault_one_party"


class TestTopLevel(Refuses):
    name = "fault_top_level"
    refused = {"no": lambda: mp.put("P1", mp.put("P0", 1))}


class TestFailingCheck(Refuses):
    name = "fault_fails"


class TestNoModel(Refuses):
    name = "fault_no_model"


class TestOpenDevice(DeviceSuite):
    kind = "FAULT"

    def cluster(self):
        devices = {
            "A": {"kind": "PPU", "members": ["a"]},
            "B": {"kind": "PPU", "members": ["b"]},
            "F": {"kind": "FAULT", "members": ["a", "b"]},
        }
        nodes = [{"name": "a"}, {"name": "b"}]
        return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})


class TestOpenToAnother(TestOpenDevice):
    kind = "FAULT_OTHER"


class TestMoney(AttributeSuite):
    kinds = st.builds(faults.Money, st.integers(0, 999))
"""

CAUGHT = {
    "TestResults::test_results_stay": "changes the results of a program",
    "TestSeed::test_all_parties": "makes another program with PYTHONHASHSEED=2",
    "TestPassInPlace::test_programs_stay": "changes the program that it is given",
    "TestDiscloses::test_nothing_more": "has a program disclose more",
    "TestPassInputs::test_programs_stay": "fault_inputs ends in a failure",
    "TestNoPass::test_it_is_found": "no pass 'fault_that_is_not_there' is installed",
    "TestOrder::test_it_finds_the_same": "finds something else in another process",
    "TestFails::test_every_program": "fault_fails fails for a valid program",
    "TestAnalysisInPlace::test_the_program_stays": "fault_in_place changes the program",
    "TestColumns::test_every_program": "the report of fault_columns is not safe to print",
    "TestNan::test_every_program": "the report of fault_nan cannot be shown",
    "TestLazy::test_every_program": "the report of fault_lazy cannot be shown",
    "TestCheckInputs::test_every_program": "fault_inputs fails for a valid program",
    "TestOneParty::test_what_is_refused": "fault_one_party fails for a valid program",
    "TestTopLevel::test_what_is_refused_in_a_branch": "fault_top_level does not refuse a program",
    "TestText::test_every_program": "fault_text gives no list of texts",
    "TestFailingCheck::test_every_program": "fault_fails fails for a valid program",
    "TestNoModel::test_its_fields": "fault_no_model is not a StrictModel",
    "TestNoModel::test_what_is_refused": "fault_no_model does not refuse a program",
    "TestOpenDevice::test_no_way_out": "a FAULT lets values out without mp.reveal",
    "TestOpenToAnother::test_no_way_out": 'Transfer("FAULT_OTHER", "FAULT_PLAIN", …',
    "TestOpenDevice::test_what_is_protected": "the host fetches a value that is on a FAULT",
    "TestOpenDevice::test_who_learns": "the way into a FAULT discloses what is put there",
    "TestMoney::test_it_comes_back_from_its": "does not come back from its parameters",
    "TestMoney::test_equal_types": "Money defines its own equality",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what pytest prints of a test file on the faults."""
    only = " or ".join(test.replace("::", " and ") for test in [*CAUGHT, PASSES])
    return told_of(tmp_path_factory.mktemp("faults"), ENTRIES, FAULTS, TESTS, only=only)


PASSES = "TestManyPrograms::test_it_finds_the_same"


@pytest.mark.parametrize("test", CAUGHT)
def test_a_fault_is_caught(told, test):
    name = test.replace("::", ".")
    parts = [part for part in told.split("\n____") if f" {name}" in part]
    assert parts, told[-4000:]
    assert any(CAUGHT[test] in part for part in parts), parts[0]


def test_hundreds_of_programs_are_asked_about_in_another_process(told):
    assert "TestManyPrograms" not in told, told[-4000:]
    assert "1 passed" in told
