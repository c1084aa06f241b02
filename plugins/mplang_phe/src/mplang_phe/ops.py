"""Ops of the dialect ``phe``. Imports no cryptographic library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from mplang_analysis import Interval, OpRanges, RangeRule

from mplang_core import TensorType, simple_op
from mplang_core.ext import OPTIONAL, Effects, Operation
from mplang_phe.types import MAX_SCALE, PheCiphertextType, PhePrivateKeyType, PhePublicKeyType

Limit: TypeAlias = int | float

PLAIN_BITS = 62
"""Bits that a plain operand has at most, times its scale."""

MAX_PRODUCTS = 1 << 24
"""Products of a matrix product at most."""

DEFAULT_BITS = 3072
FLOAT_BITS = 1023
"""Bits before the point of a number that a float of 64 bits holds."""

_PRIVATE = {"kind": PhePrivateKeyType.name, "visibility": ("PRIVATE",)}
_PUBLIC = {"kind": PhePublicKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_CIPHERTEXT = {"kind": PheCiphertextType.name, "visibility": ("SECRET",)}
_TENSOR = {"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")}


def plain_bits(x: TensorType, limit: Limit, scale: int) -> int:
    """Return how many bits plain numbers have at most, times two to the power of their scale.

    Args:
        x: their type.
        limit: how large they are at most, either way; ``OPTIONAL`` for what an integer's type
            holds.
        scale: bits behind the binary point.

    Raises:
        TypeError: they are not numbers, or floats without a limit.
        ValueError: they have too many bits.

    Example:
        >>> from mplang_core.ext import OPTIONAL
        >>> plain_bits(TensorType("i8"), OPTIONAL, 0), plain_bits(TensorType("f32"), 1.0, 20)
        (8, 21)
    """
    name = x.dtype.value
    if not name.startswith(("i", "u", "f", "bool")):
        raise TypeError(f"numbers are encrypted, got {x}")
    bounded = limit is not OPTIONAL
    if bounded and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise TypeError(f"limit is how large a number is at most, got {limit!r}")
    if bounded and not 0 <= limit < math.inf:
        raise TypeError(f"limit is how large a number is at most, from 0, got {limit!r}")
    if type(scale) is not int or not 0 <= scale <= MAX_SCALE:
        raise TypeError(f"scale is a number of bits from 0 to {MAX_SCALE}, got {scale!r}")
    is_float = name.startswith("f")
    if is_float and not (bounded and scale):
        raise TypeError(
            f"{x} is encrypted in fixed point: say by limit= how large a number is at most, and by "
            "scale= how many bits it has behind the point"
        )
    if scale and not is_float:
        raise TypeError(f"{x} has no fraction, so leave scale={scale} out")
    most = Fraction(limit) * 2**scale if bounded else Fraction(_largest(name))
    bits = math.ceil(most).bit_length()
    if bits > PLAIN_BITS:
        raise ValueError(
            f"plain numbers have {PLAIN_BITS} bits at most, and {x} with this limit and "
            f"scale={scale} has {bits}: say a smaller limit="
        )
    return bits


def _largest(name: str) -> int:
    """Return the largest absolute value of a type of integers."""
    if name == "bool":
        return 1
    bits = int(name[1:])
    return (1 << bits) - 1 if name.startswith("u") else 1 << (bits - 1)


def _of(x: PheCiphertextType, shape: Sequence[int], bits: int, scale: int) -> PheCiphertextType:
    """Return the type of a result under the same key."""
    inner = TensorType("f64" if scale else "i64", tuple(shape))
    return PheCiphertextType(inner, x.key, bits, scale)


def _check_key(x: PheCiphertextType, key: PhePublicKeyType | PhePrivateKeyType) -> None:
    if not isinstance(x, PheCiphertextType):
        raise TypeError(f"it takes numbers that are encrypted, got {x}")
    if key.bits != x.key:
        raise ValueError(f"it is encrypted under a key of {x.key} bits, got {key}")


@simple_op(
    "phe.keygen",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    inputs=(),
    outputs=(_PRIVATE, _PUBLIC),
)
def keygen(*, bits: int = DEFAULT_BITS) -> tuple[PhePrivateKeyType, PhePublicKeyType]:
    """Generate a key pair of Paillier's scheme (EUROCRYPT 1999) from the system's entropy.

    It is the variant with short random exponents (Damgård, Jurik, Nielsen, "A generalization of
    Paillier's public-key system with applications to electronic voting", 2010, section 4.2).

    Args:
        bits: of the modulus: 2048, 3072 or 4096. 3072 takes some seconds.

    Returns:
        A ``phe.private_key<bits>``, which cannot leave its party, and its ``phe.public_key<bits>``.

    Raises:
        TraceError: a key has no such size.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import keygen
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     return mp.put("P1", public)
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     len(mp.fetch(sim, mp.evaluate(sim, program)).modulus)
        256
    """
    return PhePrivateKeyType(bits), PhePublicKeyType(bits)


@simple_op(
    "phe.encrypt",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_TENSOR, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def encrypt(
    x: TensorType, key: PhePublicKeyType, *, limit: Limit = OPTIONAL, scale: int = 0
) -> PheCiphertextType:
    """Encrypt numbers to the holder of a key, one ciphertext each.

    Args:
        x: integers, bools, or floats.
        key: a ``phe.public_key<…>`` at the same party.
        limit: how large a number is at most, either way; of integers by default what their type
            holds.
        scale: of floats how many bits they have behind the binary point; they are rounded to
            these, half to even.

    Returns:
        A ``phe.ciphertext<…>`` of the same shape.

    Raises:
        TraceError: these are not numbers, or none that fit; shows the line.
        KernelError: a number is larger than the limit, or not finite. Raised at the party.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import encrypt, keygen
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     return mp.device("P0")(encrypt)(mp.put("P0", [1.5, -2]), public, limit=9, scale=4)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     print(mp.evaluate(sim, program).type)
        phe.ciphertext<f64[2], 2048, 8, 4>@{0}
    """
    inner = TensorType("f64" if scale else "i64", x.shape)
    return PheCiphertextType(inner, key.bits, plain_bits(x, limit, scale), scale)


def _ranges_of_decrypted(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    kind = op.inputs[0].type
    assert isinstance(kind, PheCiphertextType)
    if kind.scale:
        most = 2.0 ** (kind.bits - kind.scale)
        return OpRanges([Interval(-most, most)])
    return OpRanges([Interval(1 - (1 << kind.bits), (1 << kind.bits) - 1)])


@simple_op(
    "phe.decrypt",
    reads=(),
    effects=Effects.NONE,
    interfaces=[RangeRule(_ranges_of_decrypted)],
    inputs=(_CIPHERTEXT, _PRIVATE),
    outputs=(_TENSOR,),
)
def decrypt(x: PheCiphertextType, key: PhePrivateKeyType) -> TensorType:
    """Decrypt numbers.

    Args:
        x: a ``phe.ciphertext<…>``.
        key: the ``phe.private_key<…>`` at the same party.

    Returns:
        Integers as ``i64``, which are exact, or fixed-point numbers as ``f64``, exact up to 53
        bits and else right to a part in 2**53.

    Raises:
        TraceError: integers may have more than 63 bits, or others more than a float holds; shows
            the line.
        KernelError: the key is another one, or a number is larger than its type says, so somebody
            gave another ciphertext than the program says. Raised at the party.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1.53, -2]), public, limit=9, scale=4)
        ...     return mp.device("P0")(decrypt)(x, private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [1.5, -2.0]
    """
    _check_key(x, key)
    if not x.scale and x.bits > 63:
        raise ValueError(
            f"integers of {x.bits} bits do not fit in i64, which has 63: say smaller limits, or "
            "add fewer of them"
        )
    if x.bits - x.scale > FLOAT_BITS:
        raise ValueError(f"numbers of {x.bits - x.scale} bits before the point do not fit in f64")
    return x.inner


def _sum_type(
    x: PheCiphertextType, y: PheCiphertextType, key: PhePublicKeyType
) -> PheCiphertextType:
    _check_key(x, key)
    _check_key(y, key)
    if x.inner != y.inner or x.scale != y.scale:
        raise TypeError(f"addends need one shape and the same number of fraction bits: {x} and {y}")
    return _of(x, x.inner.shape, max(x.bits, y.bits) + 1, x.scale)


@simple_op(
    "phe.add",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _CIPHERTEXT, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def add(x: PheCiphertextType, y: PheCiphertextType, key: PhePublicKeyType) -> PheCiphertextType:
    """Add encrypted numbers, element by element.

    As of all ops on ciphertexts, the result is randomized anew, so that it tells nothing of its
    operands to who has them and no private key. That costs an encryption of each element.

    Args:
        x: a ``phe.ciphertext<…>``.
        y: another one of the same shape and scale, under the same key.
        key: the ``phe.public_key<…>`` of it, at the same party.

    Returns:
        A ``phe.ciphertext<…>``, with one bit more.

    Raises:
        TraceError: they are of different shapes, scales or keys; shows the line.
        KernelError: one is not a ciphertext under that key.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import add, decrypt, encrypt, keygen
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1, -2]), public, limit=9)
        ...     return mp.device("P0")(decrypt)(mp.device("P0")(add)(x, x, public), private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [2, -4]
    """
    return _sum_type(x, y, key)


@simple_op(
    "phe.sub",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _CIPHERTEXT, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def sub(x: PheCiphertextType, y: PheCiphertextType, key: PhePublicKeyType) -> PheCiphertextType:
    """Subtract encrypted numbers, element by element; see :func:`add`.

    Args:
        x: a ``phe.ciphertext<…>``.
        y: another one of the same shape and scale, under the same key.
        key: the ``phe.public_key<…>`` of it, at the same party.

    Returns:
        A ``phe.ciphertext<…>``, with one bit more.

    Raises:
        TraceError: they are of different shapes, scales or keys; shows the line.
        KernelError: one is not a ciphertext under that key.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen, sub
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1, -2]), public, limit=9)
        ...     return mp.device("P0")(decrypt)(mp.device("P0")(sub)(x, x, public), private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [0, 0]
    """
    return _sum_type(x, y, key)


@simple_op(
    "phe.multiply_plain",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _TENSOR, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def multiply_plain(
    x: PheCiphertextType,
    y: TensorType,
    key: PhePublicKeyType,
    *,
    limit: Limit = OPTIONAL,
    scale: int = 0,
) -> PheCiphertextType:
    """Multiply encrypted numbers by plain ones, element by element.

    Args:
        x: a ``phe.ciphertext<…>``.
        y: numbers of the same shape, or one number, at the same party.
        key: the ``phe.public_key<…>`` of the ciphertexts, at the same party.
        limit: how large a plain number is at most, as of :func:`encrypt`.
        scale: of plain floats how many bits they have behind the binary point.

    Returns:
        A ``phe.ciphertext<…>`` of the shape of ``x``, with the bits, and the scales, of both.

    Raises:
        TraceError: they are of different shapes or keys, or do not fit; shows the line.
        KernelError: a plain number is larger than the limit, or one is not a ciphertext.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen, multiply_plain
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1, -2]), public, limit=9)
        ...     y = mp.put("P0", [0.5, 3])
        ...     z = mp.device("P0")(multiply_plain)(x, y, public, limit=4, scale=8)
        ...     return mp.device("P0")(decrypt)(z, private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [0.5, -6.0]
    """
    _check_key(x, key)
    if y.shape not in ((), x.inner.shape):
        raise TypeError(f"plain numbers have the shape {x.inner.shape}, or are one, got {y}")
    return _of(x, x.inner.shape, x.bits + plain_bits(y, limit, scale), x.scale + scale)


@simple_op(
    "phe.matmul_plain",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _TENSOR, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def matmul_plain(
    x: PheCiphertextType,
    y: TensorType,
    key: PhePublicKeyType,
    *,
    limit: Limit = OPTIONAL,
    scale: int = 0,
) -> PheCiphertextType:
    """Multiply a matrix or a vector of encrypted numbers by a plain matrix.

    Args:
        x: a ``phe.ciphertext<…>`` of shape ``[m, k]`` or ``[k]``.
        y: numbers of shape ``[k, n]``, at the same party.
        key: the ``phe.public_key<…>`` of the ciphertexts, at the same party.
        limit: how large a plain number is at most, as of :func:`encrypt`.
        scale: of plain floats how many bits they have behind the binary point.

    Returns:
        A ``phe.ciphertext<…>`` of shape ``[m, n]`` or ``[n]``.

    Raises:
        TraceError: they do not fit, or are under another key; shows the line.
        KernelError: a plain number is larger than the limit, or one is not a ciphertext.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen, matmul_plain
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [[1, -2]]), public, limit=9)
        ...     y = mp.put("P0", np.array([[1, 5], [2, 0]]))
        ...     z = mp.device("P0")(matmul_plain)(x, y, public, limit=5)
        ...     return mp.device("P0")(decrypt)(z, private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [[-3, 5]]
    """
    _check_key(x, key)
    shape = x.inner.shape
    if len(shape) not in (1, 2) or len(y.shape) != 2 or shape[-1] != y.shape[0]:
        raise TypeError(f"it multiplies [m, k] or [k] by [k, n], got {x.inner} and {y}")
    if math.prod(shape) * y.shape[1] > MAX_PRODUCTS:
        raise ValueError(f"a matrix product has {MAX_PRODUCTS:,} products at most")
    bits = x.bits + plain_bits(y, limit, scale) + _bits_of_terms(y.shape[0])
    return _of(x, (*shape[:-1], y.shape[1]), bits, x.scale + scale)


def _bits_of_terms(terms: int) -> int:
    """Return how many bits a sum has more than its terms."""
    return max(terms - 1, 0).bit_length()


@simple_op(
    "phe.sum",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def sum(x: PheCiphertextType, key: PhePublicKeyType) -> PheCiphertextType:
    """Add encrypted numbers along the first axis.

    Args:
        x: a ``phe.ciphertext<…>`` of shape ``[n, …]``.
        key: the ``phe.public_key<…>`` of it, at the same party.

    Returns:
        A ``phe.ciphertext<…>`` of shape ``[…]``.

    Raises:
        TraceError: it has no axis, or another key; shows the line.
        KernelError: one is not a ciphertext under that key.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen, sum
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1, -2, 7]), public, limit=9)
        ...     return mp.device("P0")(decrypt)(mp.device("P0")(sum)(x, public), private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        6
    """
    _check_key(x, key)
    if not x.inner.shape:
        raise TypeError(f"it adds along the first axis, and {x} has none")
    terms, *shape = x.inner.shape
    return _of(x, shape, x.bits + _bits_of_terms(terms), x.scale)


@simple_op(
    "phe.segment_sum",
    reads=(),
    effects=Effects.FRESH,
    inputs=(_CIPHERTEXT, _TENSOR, _PUBLIC),
    outputs=(_CIPHERTEXT,),
)
def segment_sum(
    x: PheCiphertextType, segments: TensorType, key: PhePublicKeyType, *, count: int
) -> PheCiphertextType:
    """Add encrypted numbers by segment along the first axis, as a histogram does.

    Args:
        x: a ``phe.ciphertext<…>`` of shape ``[n, …]``.
        segments: for each of the n the number of its segment; integers of shape ``[n]``, in any
            order, at the same party.
        key: the ``phe.public_key<…>`` of the ciphertexts, at the same party.
        count: how many segments there are.

    Returns:
        A ``phe.ciphertext<…>`` of shape ``[count, …]``; zero for a segment without numbers.

    Raises:
        TraceError: they do not fit, or are under another key; shows the line.
        KernelError: there is no such segment, or one is no ciphertext.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_phe import decrypt, encrypt, keygen, segment_sum
        >>> def program():
        ...     private, public = mp.device("P0")(keygen)(bits=2048)
        ...     x = mp.device("P0")(encrypt)(mp.put("P0", [1, -2, 7]), public, limit=9)
        ...     y = mp.device("P0")(segment_sum)(x, mp.put("P0", [2, 0, 2]), public, count=3)
        ...     return mp.device("P0")(decrypt)(y, private)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [-2, 0, 8]
    """
    _check_key(x, key)
    if not x.inner.shape or segments.shape != x.inner.shape[:1]:
        raise TypeError(f"segments are [n] for numbers of [n, …], got {segments} and {x.inner}")
    if segments.dtype.value[0] not in "iu":
        raise TypeError(f"segments are integers, got {segments}")
    if type(count) is not int or count < 0:
        raise TypeError(f"count is a number of segments, got {count!r}")
    terms, *shape = x.inner.shape
    return _of(x, (count, *shape), x.bits + _bits_of_terms(terms), x.scale)
