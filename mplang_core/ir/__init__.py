"""Intermediate representation: SSA graphs with regions, verifier, text and wire format."""

from mplang_core.ir.attrs import (
    AttrValue as AttrValue,
    AttrVisitor as AttrVisitor,
    normalize as normalize,
)
from mplang_core.ir.graph import (
    AnyType as AnyType,
    Graph as Graph,
    Location as Location,
    Operation as Operation,
    Program as Program,
    Value as Value,
)
from mplang_core.ir.opdef import (
    Attr as Attr,
    Effects as Effects,
    Level as Level,
    OpDef as OpDef,
    interface_of as interface_of,
    op_defs as op_defs,
)
from mplang_core.ir.printer import print_program as print_program
from mplang_core.ir.verifier import verify as verify
from mplang_core.ir.wire import (
    WIRE_VERSION as WIRE_VERSION,
    digest as digest,
    from_bytes as from_bytes,
    to_bytes as to_bytes,
)
