"""The language: contexts, tracing, functions, control flow."""

from mplang_core.edsl.context import MPContext, MPObject, cur_ctx, find_ctx, with_ctx
from mplang_core.edsl.function import apply, builtin_function, function, launch
from mplang_core.edsl.interp import InterpContext, InterpVar
from mplang_core.edsl.literals import constant
from mplang_core.edsl.operators import define_operators
from mplang_core.edsl.peval import invoke, peval
from mplang_core.edsl.tracer import TraceContext, TracedFunction, TraceVar, trace

__all__ = [
    "InterpContext",
    "InterpVar",
    "MPContext",
    "MPObject",
    "TraceContext",
    "TraceVar",
    "TracedFunction",
    "apply",
    "builtin_function",
    "constant",
    "cur_ctx",
    "find_ctx",
    "function",
    "invoke",
    "launch",
    "peval",
    "trace",
    "with_ctx",
]

define_operators()
