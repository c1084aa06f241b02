"""SIMP (single program, multiple parties): ops, hosts, workers and communicators.

The user's functions: :func:`pcall_static`, :func:`pcall_dynamic`, the shuffles and
:func:`pconv`.
"""

from mplang_core.edsl import constant as constant
from mplang_core.runtime.communicator import Communicator as Communicator
from mplang_core.simp.backend import (
    BackendSpec as BackendSpec,
    backends as backends,
    connect as connect,
)
from mplang_core.simp.host import HostVar as HostVar, SimpHost as SimpHost
from mplang_core.simp.ops import (
    keep as keep,
    pcall_dynamic as pcall_dynamic,
    pcall_static as pcall_static,
    pconv as pconv,
    pshfl as pshfl,
    pshfl_s as pshfl_s,
    uniform_cond as uniform_cond,
    while_loop as while_loop,
)
from mplang_core.simp.worker import WorkerInterpreter as WorkerInterpreter
from mplang_core.types import size_of as size_of
