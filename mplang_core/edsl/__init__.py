"""Embedded language: contexts, values, tracing and functions."""

from mplang_core.edsl.context import (
    MPContext as MPContext,
    MPObject as MPObject,
    cur_ctx as cur_ctx,
    find_ctx as find_ctx,
    open_ctx as open_ctx,
    with_ctx as with_ctx,
)
from mplang_core.edsl.function import (
    builtin_function as builtin_function,
    function as function,
    launch as launch,
)
from mplang_core.edsl.interp import InterpContext as InterpContext, InterpVar as InterpVar
from mplang_core.edsl.literals import constant as constant, public as public
from mplang_core.edsl.operators import define_operators
from mplang_core.edsl.peval import invoke as invoke, peval as peval
from mplang_core.edsl.traced_function import TracedFunction as TracedFunction, apply as apply
from mplang_core.edsl.tracer import (
    TraceContext as TraceContext,
    TraceVar as TraceVar,
    trace as trace,
)

define_operators()
