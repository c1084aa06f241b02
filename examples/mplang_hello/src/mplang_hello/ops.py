"""The ops of ``hello``: what they take and give, and what they refuse.

One function over types declares an op and its feop. It is called while a program is traced, and
again wherever the program is verified. What an op does to data is in ``kernels.py``.
"""

from __future__ import annotations

from typing import Any

from mplang_analysis import ChangeRule, Changes
from mplang_core import FeProgram, TensorType, feop, simple_op
from mplang_core.ext import Effects

from mplang_hello.types import HalfType, SummaryType

MAX_DIGITS = 15

_TENSOR = {"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")}
_SUMMARY = {"kind": SummaryType.name, "visibility": ("PUBLIC", "PRIVATE")}
_HALF = {"kind": HalfType.name, "visibility": ("SECRET",)}


@simple_op(
    "hello.summarize", version="1", reads=(), total=True, inputs=(_TENSOR,), outputs=(_SUMMARY,)
)
def summarize(x: TensorType, *, digits: int = 6) -> SummaryType:
    """Summarize a tensor by its least element, its mean and its greatest element.

    Args:
        x: a tensor of bools, integers or floats that is not empty.
        digits: to how many digits behind the point, 0 to 15.

    Returns:
        A ``hello.summary<…>`` of the tensor's type.

    Raises:
        TraceError: the tensor is empty or complex, or there are too many digits.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import summarize
        >>> def program():
        ...     x = mp.put("P0", [1.0, 2.5, 7.0])
        ...     return mp.put("P1", mp.device("P0")(summarize)(x, digits=2))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        Summary(f64[3], least=1.0, mean=3.5, greatest=7.0)
    """
    if not 0 <= digits <= MAX_DIGITS:
        raise ValueError(f"digits: expected 0 to {MAX_DIGITS}, got {digits}")
    return SummaryType(x)


# -- made of JAX: no op and no kernel of its own


@feop(
    name="hello.standardize",
    version="1",
    dialects=("stablehlo",),
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Tensor"},),
)
def standardize(x: Any) -> FeProgram:
    """Shift and scale a tensor to the mean 0 and the standard deviation 1.

    It is StableHLO, so it runs wherever that can be compiled: on a ``PPU``, and on the secret
    shares of an ``SPU``.

    Args:
        x: a tensor of floats, not all of them the same.

    Returns:
        A tensor of the same type.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> from mplang_hello import standardize
        >>> def program():
        ...     return mp.device("P0")(standardize)(mp.put("P0", np.float32([1, 2, 3, 4])))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).round(2)
        array([-1.34, -0.45,  0.45,  1.34], dtype=float32)
    """
    from mplang_jax import jax_compile_from_data

    made: FeProgram = jax_compile_from_data(lambda x: (x - x.mean()) / x.std(), x)
    return made


# -- of the vault


@simple_op(
    "hello.split",
    version="1",
    effects=Effects.FRESH,
    reads=(),
    total=True,
    inputs=(_TENSOR,),
    outputs=(_HALF, _HALF),
)
def split(x: TensorType) -> tuple[HalfType, HalfType]:
    """Split a tensor into two halves, each of which is random by itself.

    One half is a one-time pad, the other one the tensor's bytes under it. ``mp.put`` and
    ``mp.seal`` into a ``VAULT`` do this, and hand each member its half.

    Args:
        x: any tensor.

    Returns:
        Two ``hello.half<…>`` of the tensor's type.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import join, split
        >>> def program(x):
        ...     a, b = mp.device("P0")(split)(mp.put("P0", x))
        ...     return mp.device("P0")(join)(a, b)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program, 42))
        array(42)
    """
    half = HalfType(x)
    return half, half


@simple_op(
    "hello.join",
    version="1",
    interfaces=[ChangeRule(lambda op: Changes(protocol="VAULT"))],  # by a wrong half
    reads=(),
    total=True,
    inputs=(_HALF, _HALF),
    outputs=(_TENSOR,),
)
def join(a: HalfType, b: HalfType) -> TensorType:
    """Join the two halves of a tensor; who runs it learns the tensor.

    ``mp.reveal`` of what is in a ``VAULT`` does this at those who are to know.

    Args:
        a: one ``hello.half<…>``.
        b: the other one.

    Returns:
        The tensor.

    Raises:
        TraceError: they are not halves of one type.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import join, split
        >>> def program(x):
        ...     a, b = mp.device("P0")(split)(mp.put("P0", x))
        ...     return mp.device("P0")(join)(b, a)  # in any order
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program, [1, 2]))
        array([1, 2])
    """
    if a != b:
        raise TypeError(f"expected two halves of one type, got {a} and {b}")
    return a.plain


@simple_op(
    "hello.pick",
    version="1",
    reads=(),
    total=True,
    execution_model="multi_party",
    targets=("share",),
    inputs=(_HALF,),
    outputs=(_HALF,),
)
def pick(x: HalfType, *, row: int) -> HalfType:
    """Pick a row of a tensor in a vault, without opening it: each member does so on its half.

    Args:
        x: a ``hello.half<…>`` of one dimension at least.
        row: which one; the members know it.

    Returns:
        A ``hello.half<…>`` of the row's type.

    Raises:
        TraceError: there is no such row.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import pick
        >>> cluster = mp.ClusterSpec.from_dict({
        ...     "nodes": [{"name": "alice"}, {"name": "bob"}],
        ...     "devices": {"V": {"kind": "VAULT", "members": ["alice", "bob"]}},
        ... })
        >>> def program():
        ...     x = mp.seal([[1, 2], [3, 4]], to="V")
        ...     return mp.reveal(mp.device("V")(pick)(x, row=1))
        >>> with mp.Simulator(cluster) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        [array([3, 4]), array([3, 4])]
    """
    if not x.plain.shape or not 0 <= row < x.plain.shape[0]:
        raise ValueError(f"there is no row {row} in {x.plain}")
    return HalfType(TensorType(x.plain.dtype, x.plain.shape[1:]))
