"""StableHLO text with each op of the shared admission list, on each element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ELEMENTS = ["i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64"]

_UNARY = """
abs cbrt ceil cosine count_leading_zeros exponential exponential_minus_one floor log log_plus_one
logistic negate not popcnt round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh
"""
_BINARY = """
add and atan2 divide maximum minimum multiply or power remainder shift_left
shift_right_arithmetic shift_right_logical subtract xor
"""
UNARY, BINARY = frozenset(_UNARY.split()), frozenset(_BINARY.split())
SIZE = 4


def module(takes: Sequence[str], gives: Sequence[str], *lines: str) -> str:
    """Return a module; the last line returns its results."""
    arguments = ", ".join(f"%arg{i}: {kind}" for i, kind in enumerate(takes))
    results = f"({', '.join(gives)})" if len(gives) > 1 else "".join(gives)
    body = "\n    ".join(lines)
    return (
        f"module @main {{\n  func.func public @main({arguments}) -> {results} {{\n"
        f"    {body}\n  }}\n}}\n"
    )


def one(takes: Sequence[str], gives: str, line: str, *before: str) -> str:
    """Return a module that returns ``%0``, which the line defines."""
    return module(takes, [gives], *before, line, f"return %0 : {gives}")


def tensor(element: str, *shape: int) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def elementwise(name: str, element: str) -> str:
    t = tensor(element, SIZE)
    takes = [t] * (2 if name in BINARY else 1)
    names = ", ".join(f"%arg{i}" for i in range(len(takes)))
    return one(takes, t, f"%0 = stablehlo.{name} {names} : {t}")


def zero(element: str) -> str:
    if element == "i1":
        return "false"
    return "0.0" if element.startswith("f") else "0"


def constant(name: str, element: str, *shape: int) -> str:
    return f"%{name} = stablehlo.constant dense<{zero(element)}> : {tensor(element, *shape)}"


def adder(element: str, op: str = "add") -> str:
    """Return a region that adds two elements."""
    s = tensor(element)
    return (
        f"{{\n      ^bb0(%x: {s}, %y: {s}):\n        %s = stablehlo.{op} %x, %y : {s}\n"
        f"        stablehlo.return %s : {s}\n    }}"
    )


def chooser(element: str, direction: str = "LT") -> str:
    """Return a region that compares two elements."""
    s = tensor(element)
    order = ", TOTALORDER" if element.startswith("f") else ""
    return (
        f"{{\n      ^bb0(%x: {s}, %y: {s}):\n"
        f"        %c = stablehlo.compare {direction}, %x, %y{order} : ({s}, {s}) -> tensor<i1>\n"
        f"        stablehlo.return %c : tensor<i1>\n    }}"
    )


def _structure(e: str) -> Mapping[str, str]:
    t, m, s, b = tensor(e, SIZE), tensor(e, SIZE, SIZE), tensor(e), tensor("i1", SIZE)
    double, flat, two = tensor(e, 2 * SIZE), tensor(e, SIZE * SIZE), tensor(e, 2)
    image, kernel = tensor(e, 1, SIZE, SIZE, 1), tensor(e, 2, 2, 1, 1)
    i32, init = tensor("i32"), constant("z", e)
    start = "%i = stablehlo.constant dense<1> : tensor<i32>"
    order = ", FLOAT" if e.startswith("f") else ""
    return {
        "bitcast_convert": one([t], t, f"%0 = stablehlo.bitcast_convert %arg0 : ({t}) -> {t}"),
        "broadcast_in_dim": one(
            [t], m, f"%0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : ({t}) -> {m}"
        ),
        "case": one(
            [t, i32], t,
            f'%0 = "stablehlo.case"(%arg1) ({{\n stablehlo.return %arg0 : {t}\n }}, {{\n'
            f" %c = stablehlo.reverse %arg0, dims = [0] : {t}\n stablehlo.return %c : {t}\n }})"
            f" : ({i32}) -> {t}",
        ),
        "clamp": one(
            [s, t, s], t, f"%0 = stablehlo.clamp %arg0, %arg1, %arg2 : ({s}, {t}, {s}) -> {t}"
        ),
        "compare": one(
            [t, t], b, f"%0 = stablehlo.compare LE, %arg0, %arg1{order} : ({t}, {t}) -> {b}"
        ),
        "concatenate": one(
            [t, t], double,
            f"%0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : ({t}, {t}) -> {double}",
        ),
        "constant": module([t], [t], constant("0", e, SIZE), f"return %0 : {t}"),
        "convert": one([t], t, f"%0 = stablehlo.convert %arg0 : {t}"),
        "convolution": one(
            [image, kernel], tensor(e, 1, SIZE - 1, SIZE - 1, 1),
            "%0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
            "[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
            f" : ({image}, {kernel}) -> {tensor(e, 1, SIZE - 1, SIZE - 1, 1)}",
        ),
        "custom_call": module(
            [t], [tensor(e, 2), tensor("i32", 2)],
            "%0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 2 : i64}, "
            f"mhlo.version = 1 : i64}} : ({t}) -> ({tensor(e, 2)}, {tensor('i32', 2)})",
            f"return %0#0, %0#1 : {tensor(e, 2)}, {tensor('i32', 2)}",
        ),
        "dot_general": one(
            [m, m], m,
            "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] "
            f": ({m}, {m}) -> {m}",
        ),
        "dynamic_slice": one(
            [t], tensor(e, 2),
            f"%0 = stablehlo.dynamic_slice %arg0, %i, sizes = [2] : ({t}, {i32}) -> {tensor(e, 2)}",
            start,
        ),
        "dynamic_update_slice": one(
            [t, tensor(e, 2)], t,
            "%0 = stablehlo.dynamic_update_slice %arg0, %arg1, %i "
            f": ({t}, {tensor(e, 2)}, {i32}) -> {t}",
            start,
        ),
        "gather": one(
            [t, tensor("i32", 2, 1)], tensor(e, 2),
            '%0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<'
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
            "slice_sizes = array<i64: 1>}> "
            f": ({t}, {tensor('i32', 2, 1)}) -> {tensor(e, 2)}",
        ),
        "if": one(
            [t, tensor("i1")], t,
            f'%0 = "stablehlo.if"(%arg1) ({{\n stablehlo.return %arg0 : {t}\n }}, {{\n'
            f" %c = stablehlo.reverse %arg0, dims = [0] : {t}\n stablehlo.return %c : {t}\n }})"
            f" : (tensor<i1>) -> {t}",
        ),
        "iota": module([t], [t], f"%0 = stablehlo.iota dim = 0 : {t}", f"return %0 : {t}"),
        "is_finite": one([t], b, f"%0 = stablehlo.is_finite %arg0 : ({t}) -> {b}"),
        "optimization_barrier": module(
            [t, t], [t, t],
            f"%0:2 = stablehlo.optimization_barrier %arg0, %arg1 : {t}, {t}",
            f"return %0#0, %0#1 : {t}, {t}",
        ),
        "pad": one(
            [t, s], tensor(e, SIZE + 3),
            f"%0 = stablehlo.pad %arg0, %arg1, low = [1], high = [2], interior = [0] "
            f": ({t}, {s}) -> {tensor(e, SIZE + 3)}",
        ),
        "reduce": one(
            [m], t,
            f'%0 = "stablehlo.reduce"(%arg0, %z) <{{dimensions = array<i64: 1>}}> ({adder(e)})'
            f" : ({m}, {s}) -> {t}",
            init,
        ),
        "reduce_precision": one(
            [t], t, f"%0 = stablehlo.reduce_precision %arg0, format = e5m10 : {t}"
        ),
        "reduce_window": one(
            [t], tensor(e, SIZE - 1),
            '%0 = "stablehlo.reduce_window"(%arg0, %z) <{window_dimensions = array<i64: 2>}> '
            f"({adder(e)}) : ({t}, {s}) -> {tensor(e, SIZE - 1)}",
            init,
        ),
        "reshape": one([m], flat, f"%0 = stablehlo.reshape %arg0 : ({m}) -> {flat}"),
        "return": module([t], [t], f"return %arg0 : {t}"),
        "reverse": one([t], t, f"%0 = stablehlo.reverse %arg0, dims = [0] : {t}"),
        "scatter": one(
            [t, tensor("i32", 2, 1), tensor(e, 2)], t,
            '%0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = '
            "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
            f"index_vector_dim = 1>}}> ({adder(e)}) "
            f": ({t}, {tensor('i32', 2, 1)}, {tensor(e, 2)}) -> {t}",
        ),
        "select": one([b, t, t], t, f"%0 = stablehlo.select %arg0, %arg1, %arg2 : {b}, {t}"),
        "select_and_scatter": one(
            [t, tensor(e, 2)], t,
            '%0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %z) <{window_dimensions = '
            f"array<i64: 2>, window_strides = array<i64: 2>}}> ({chooser(e, 'GE')}, {adder(e)})"
            f" : ({t}, {tensor(e, 2)}, {s}) -> {t}",
            init,
        ),
        "slice": one([t], two, f"%0 = stablehlo.slice %arg0 [1:4:2] : ({t}) -> {two}"),
        "sort": one(
            [t], t,
            '%0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> '
            f"({chooser(e)}) : ({t}) -> {t}",
        ),
        "transpose": one([m], m, f"%0 = stablehlo.transpose %arg0, dims = [1, 0] : ({m}) -> {m}"),
        "while": module(
            [t], [t],
            "%n = stablehlo.constant dense<3> : tensor<i32>",
            "%o = stablehlo.constant dense<1> : tensor<i32>",
            "%z = stablehlo.constant dense<0> : tensor<i32>",
            f"%0:2 = stablehlo.while(%i = %z, %a = %arg0) : {i32}, {t}",
            "cond {", f"  %c = stablehlo.compare LT, %i, %n : ({i32}, {i32}) -> tensor<i1>",
            "  stablehlo.return %c : tensor<i1>", "} do {",
            f"  %j = stablehlo.add %i, %o : {i32}",
            f"  %b = stablehlo.reverse %a, dims = [0] : {t}",
            f"  stablehlo.return %j, %b : {i32}, {t}", "}",
            f"return %0#1 : {t}",
        ),
    }  # fmt: skip


def call(name: str, element: str) -> str:
    """Return a module with a custom call that XLA expands."""
    t = tensor(element, SIZE)
    return one(
        [t], t,
        f"%0 = stablehlo.custom_call @mhlo.{name}(%arg0) {{mhlo.attributes = {{}}, "
        f"mhlo.version = 1 : i64}} : ({t}) -> {t}",
    )  # fmt: skip


def sample(name: str, element: str) -> str:
    """Return a module with an op, by its name without the prefix.

    Raises:
        KeyError: there is no sample of the op.
    """
    if name in UNARY or name in BINARY:
        return elementwise(name, element)
    return _structure(element)[name]
