"""Digest of the names and lines of a program, which its own digest leaves out."""

from __future__ import annotations

import hashlib
import json

from mplang_core import Program
from mplang_core.ext import Location


def lines_digest(program: Program) -> str:
    """Return the SHA-256 of the name of a program and the lines of its ops, in hex.

    Approvals of version 1 hold for it; later ones for :func:`~mplang_analysis.texts_digest`.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> len(lines_digest(program))
        64
    """
    lines = [[op.opcode, _place(op.location)] for op in program.graph.walk()]
    return hashlib.sha256(json.dumps([program.name, lines]).encode()).hexdigest()


def _place(line: Location | None) -> str:
    """Return a line as version 1 of approvals has it, whatever it looks like today."""
    if line is None:
        return ""
    name = line.name
    return f"{name}, line {line.line}" if name.startswith("Cell ") else f"{name}:{line.line}"
