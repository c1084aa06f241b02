"""SIMP: one program, many parties. Ops, the host's half, the worker's half, their link.

The user's half is here: :func:`pcall_static`, :func:`pcall_dynamic`, the shuffles and
:func:`pconv`.
"""

import importlib
from typing import Any

from mplang_core.edsl import constant, uniform_cond, while_loop
from mplang_core.simp import bounded as _bounded  # noqa: F401  (declares and binds it)
from mplang_core.simp import endpoints as _endpoints  # noqa: F401  (declares and binds them)
from mplang_core.simp import kernels as _kernels  # noqa: F401  (binds them)
from mplang_core.simp import ops as _ops  # noqa: F401  (declares them)
from mplang_core.simp.api import pcall_dynamic, pcall_static, pconv, pshfl, pshfl_s
from mplang_core.simp.backend import BackendSpec, backends, connect
from mplang_core.simp.checks import CheckMode, Finding, NumberChecks
from mplang_core.simp.comm import Communicator, CommunicatorBase, size_of
from mplang_core.simp.failure import Failure, outcome_of
from mplang_core.simp.host import HostVar, SimpHost
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


def __getattr__(name: str) -> Any:
    """Lend ``seal``, ``reveal`` and ``put``, which stand on devices, one layer further up."""
    if name in ("seal", "reveal", "put"):
        return getattr(importlib.import_module("mplang_core.device"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
