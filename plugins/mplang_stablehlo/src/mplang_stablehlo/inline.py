"""Inlining of all calls in a module. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir

from mplang_stablehlo.module import walk


def inline(module: ir.Module) -> None:
    """Replace all calls in ``main`` by the bodies of the callees, and erase the callees.

    JAX writes the functions of ``jax.numpy`` as private functions. MLIR's own inliner is not in
    jaxlib.

    Args:
        module: without recursion, and of a bounded size once inlined, as
            :func:`mplang_stablehlo.call_graph.check_call_graph` checks.

    Example:
        >>> from mplang_stablehlo.module import parse, text_of
        >>> module = parse('''module @main {
        ...   func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
        ...     %0 = call @twice(%arg0) : (tensor<f32>) -> tensor<f32>
        ...     return %0 : tensor<f32>
        ...   }
        ...   func.func private @twice(%arg0: tensor<f32>) -> tensor<f32> {
        ...     %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
        ...     return %0 : tensor<f32>
        ...   }
        ... }''')
        >>> inline(module)
        >>> print(text_of(module))
        module @main {
          func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
            return %0 : tensor<f32>
          }
        }
        <BLANKLINE>
    """
    functions = {_symbol(op.operation): op.operation for op in module.body.operations}
    main = functions.pop("main")
    todo = _calls(main)
    while todo:
        call = todo.pop()
        todo.extend(_replace(call, functions[_callee(call)]))
    for function in functions.values():
        function.erase()


def _replace(call: ir.Operation, function: ir.Operation) -> list[ir.Operation]:
    """Replace a call by a copy of the function's body; return the calls in it."""
    with call.location:
        copy = function.clone(ip=ir.InsertionPoint(function))
    body = copy.regions[0].blocks[0]
    for argument, operand in zip(body.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *ops, end = [op.operation for op in body.operations]
    for op in ops:
        op.move_before(call)
        _inherit(op, call.location)
    for result, value in zip(call.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    copy.erase()
    return [found for op in ops for found in _calls(op)]


def _inherit(op: ir.Operation, line: ir.Location) -> None:
    """Set the location of a copied op to the call's, unless it has its own.

    See :mod:`mplang_stablehlo.source_lines`.
    """
    unknown = ir.Location.unknown(op.context)
    for each in (op, *walk(op)):
        if each.location == unknown:
            each.location = line


def _calls(op: ir.Operation) -> list[ir.Operation]:
    itself = [op] if op.name == "func.call" else []
    return itself + [inner for inner in walk(op) if inner.name == "func.call"]


def _callee(call: ir.Operation) -> str:
    name: str = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    return name


def _symbol(function: ir.Operation) -> str:
    name: str = ir.StringAttr(function.attributes["sym_name"]).value
    return name
