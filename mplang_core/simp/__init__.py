"""SIMP: one program, many parties. Ops, the host, the workers, and the link between them.

The user's functions are here: :func:`pcall_static`, :func:`pcall_dynamic`, the shuffles and
:func:`pconv`.
"""

from mplang_core.edsl import constant
from mplang_core.simp.backend import BackendSpec, backends, connect
from mplang_core.simp.checks import CheckMode, Finding, NumberChecks
from mplang_core.simp.comm import Communicator, CommunicatorBase, size_of
from mplang_core.simp.failure import Failure, outcome_of
from mplang_core.simp.host import HostVar, SimpHost
from mplang_core.simp.ops import (
    pcall_dynamic,
    pcall_static,
    pconv,
    pshfl,
    pshfl_s,
    uniform_cond,
    while_loop,
)
from mplang_core.simp.progress import PartyState, Traffic
from mplang_core.simp.worker import WorkerInterpreter

__all__ = [
    "BackendSpec",
    "CheckMode",
    "Communicator",
    "CommunicatorBase",
    "Failure",
    "Finding",
    "HostVar",
    "NumberChecks",
    "PartyState",
    "SimpHost",
    "Traffic",
    "WorkerInterpreter",
    "backends",
    "connect",
    "constant",
    "outcome_of",
    "pcall_dynamic",
    "pcall_static",
    "pconv",
    "pshfl",
    "pshfl_s",
    "size_of",
    "uniform_cond",
    "while_loop",
]
