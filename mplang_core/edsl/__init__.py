"""Embedded language: contexts, values, tracing and functions."""

from mplang_core.edsl.context import (
    MPContext as MPContext,
    MPObject as MPObject,
    cur_ctx as cur_ctx,
    find_ctx as find_ctx,
    with_ctx as with_ctx,
)
from mplang_core.edsl.function import (
    apply as apply,
    builtin_function as builtin_function,
    function as function,
    launch as launch,
)
from mplang_core.edsl.interp import InterpContext as InterpContext, InterpVar as InterpVar
from mplang_core.edsl.literals import constant as constant
from mplang_core.edsl.operators import define_operators
from mplang_core.edsl.peval import invoke as invoke, peval as peval
from mplang_core.edsl.tracer import (
    TraceContext as TraceContext,
    TracedFunction as TracedFunction,
    TraceVar as TraceVar,
    trace as trace,
)

define_operators()
