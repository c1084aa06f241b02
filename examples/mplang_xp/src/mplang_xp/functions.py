"""The functions of the array API standard that programs may call.

From the standard, version 2024.12 (data-apis.org/array-api): those whose results have a shape that
does not depend on data, since a program's types are known before there is any.
"""

from __future__ import annotations

ELEMENTWISE = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
    "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
    "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less "
    "less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor "
    "maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder "
    "round sign signbit sin sinh sqrt square subtract tan tanh trunc"
).split()
REDUCTIONS = (
    "all any argmax argmin count_nonzero cumulative_prod cumulative_sum max mean min prod std sum "
    "var"
).split()
SHAPES = (
    "broadcast_to concat expand_dims flip matrix_transpose moveaxis permute_dims repeat reshape "
    "roll squeeze stack tile"
).split()
OTHERS = "argsort astype diff matmul searchsorted sort take tensordot vecdot where".split()
CREATION = "arange eye full linspace ones zeros".split()

FUNCTIONS = frozenset({*ELEMENTWISE, *REDUCTIONS, *SHAPES, *OTHERS, *CREATION, "getitem"})
"""All of them, and ``getitem``, which stands for an index."""

DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 "
    "complex128".split()
)
CONSTANTS = frozenset({"e", "inf", "nan", "newaxis", "pi"})

OPERATORS = {
    "add": "add",
    "and": "bitwise_and",
    "eq": "equal",
    "floordiv": "floor_divide",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lshift": "bitwise_left_shift",
    "lt": "less",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "multiply",
    "ne": "not_equal",
    "or": "bitwise_or",
    "pow": "pow",
    "rshift": "bitwise_right_shift",
    "sub": "subtract",
    "truediv": "divide",
    "xor": "bitwise_xor",
}
"""The functions of Python's binary operators."""
