"""Programs as data: a flat SSA graph with regions, its rules, its text and its bytes."""

from mplang_core.ir.attrs import AttrValue, AttrVisitor, normalize
from mplang_core.ir.graph import AnyType, Graph, Location, Operation, Program, Value
from mplang_core.ir.opdef import Attr, Effects, Level, OpDef, interface_of, op_defs
from mplang_core.ir.parser import parse
from mplang_core.ir.printer import print_program
from mplang_core.ir.ranges import OpRanges, StepRange
from mplang_core.ir.verifier import verify
from mplang_core.ir.wire import WIRE_VERSION, digest, from_bytes, to_bytes

__all__ = [
    "WIRE_VERSION",
    "AnyType",
    "Attr",
    "AttrValue",
    "AttrVisitor",
    "Effects",
    "Graph",
    "Level",
    "Location",
    "OpDef",
    "OpRanges",
    "Operation",
    "Program",
    "StepRange",
    "Value",
    "digest",
    "from_bytes",
    "interface_of",
    "normalize",
    "op_defs",
    "parse",
    "print_program",
    "to_bytes",
    "verify",
]
