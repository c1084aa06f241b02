"""Digest of the names and lines of a program, which its own digest leaves out."""

from __future__ import annotations

import hashlib
import json

from mplang_core import Program


def lines_digest(program: Program) -> str:
    """Return the SHA-256 of the name of a program and the lines of its ops, in hex.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> len(lines_digest(program))
        64
    """
    lines = [[op.opcode, str(op.location or "")] for op in program.graph.walk()]
    return hashlib.sha256(json.dumps([program.name, lines]).encode()).hexdigest()
