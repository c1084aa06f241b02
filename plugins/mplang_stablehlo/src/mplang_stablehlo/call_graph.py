"""Call graph of a module: no recursion, and a bounded size once inlined."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from jaxlib.mlir import ir

from mplang_stablehlo.module import walk

MAX_OPS = 100_000
"""Maximum number of ops once all calls are inlined, as the engines do.

Nested calls multiply: a few of them may stand for billions of ops.
"""
MAX_DEPTH = 100  # nested calls; either engine crashes at a thousand


def check_call_graph(module: ir.Module) -> None:
    """Check the call graph of a module.

    Raises:
        ValueError: the module has something other than functions with bodies, functions are
            recursive, or the module is too large once they are inlined.
    """
    calls, sizes = {}, {}
    for op in module.body.operations:
        if op.operation.name != "func.func" or not op.operation.regions[0].blocks:
            raise ValueError("a module of StableHLO has functions with bodies, and nothing else")
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        found = list(walk(op.operation))
        calls[name] = [callee for callee in map(_callee, found) if callee]
        sizes[name] = len(found)
    _check_size(calls, sizes)


def _callee(op: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value if op.name == "func.call" else ""


def _check_size(calls: Mapping[str, list[str]], sizes: dict[str, int]) -> None:
    depths: dict[str, int] = {}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        names = sorted(set(error.args[1]))
        raise ValueError(f"the functions {str(names)[:300]} call each other") from None
    for name in order:
        if name not in sizes:
            raise ValueError(f"the function {name[:100]!r} is not there")
        depths[name] = 1 + max((depths[callee] for callee in calls[name]), default=0)
        sizes[name] += sum(sizes[callee] for callee in calls[name])
        if sizes[name] > MAX_OPS:
            raise ValueError(
                f"the function {name[:100]!r} has over {MAX_OPS} ops once its calls are inlined"
            )
        if depths[name] > MAX_DEPTH:
            raise ValueError(f"the function {name[:100]!r} has calls deeper than {MAX_DEPTH}")
