"""Extension interface: what plugins import from beside the package itself.

Everything here is documented in ``docs/authoring.md``, and changes only with a new minor version.
"""

from mplang_core.ir import Attr, Effects, Level, OpDef, Operation, Value
from mplang_core.simp.interfaces import (
    Branch,
    Call,
    Communicates,
    ControlFlow,
    Forwards,
    Labels,
    Loop,
    Message,
    PartyCall,
    PublicLiteral,
)
from mplang_core.simp.ops.common import check_parties, check_sendable, context_of, operand_types
from mplang_core.simp.projection import PartyGraph, Projects

__all__ = [
    "Attr",
    "Branch",
    "Call",
    "Communicates",
    "ControlFlow",
    "Effects",
    "Forwards",
    "Labels",
    "Level",
    "Loop",
    "Message",
    "OpDef",
    "Operation",
    "PartyCall",
    "PartyGraph",
    "Projects",
    "PublicLiteral",
    "Value",
    "check_parties",
    "check_sendable",
    "context_of",
    "operand_types",
]
