"""Ops of the dialects ``he``, ``bfv`` and ``ckks``. Imports no cryptographic library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from mplang_analysis import Constant, ConstantsRule, Interval, OpRanges, RangeRule
from mplang_stablehlo import constants_of_code

from mplang_core import FeProgram, Mask, PFunction, TensorType, feop, simple_op
from mplang_core.ext import AnyType, Attr, Effects, Feop, OpDef, Operation, flatten
from mplang_he.circuit import Given, fresh, results_of
from mplang_he.parameters import Parameters, Scheme
from mplang_he.types import HeCiphertextType, HePrivateKeyType, HePublicKeyType, HeRelinKeyType

Limit: TypeAlias = int | float

_PRIVATE = {"kind": HePrivateKeyType.name, "visibility": ("PRIVATE",)}
_PUBLIC = {"kind": HePublicKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_RELIN = {"kind": HeRelinKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_CIPHERTEXT = {"kind": HeCiphertextType.name, "visibility": ("SECRET",)}
_TENSOR = {"kind": "Tensor", "visibility": ("PUBLIC", "PRIVATE")}


@simple_op(
    "he.keygen",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    inputs=(),
    outputs=(_PRIVATE, _PUBLIC, _RELIN),
)
def keygen(
    *, scheme: str, degree: int, primes: tuple[int, ...], plain: int
) -> tuple[HePrivateKeyType, HePublicKeyType, HeRelinKeyType]:
    """Generate a key pair, and the keys by which products are relinearized.

    A device of kind ``HE`` does it, with parameters that have room for the function.

    Args:
        scheme: ``bfv`` or ``ckks``.
        degree: of the polynomials.
        primes: bits of the primes of the modulus.
        plain: bits of the scale of CKKS, or of the plain modulus of BFV.

    Returns:
        A ``he.private_key<…>``, which cannot leave its party, a ``he.public_key<…>`` and a
        ``he.relin_key<…>``.

    Raises:
        TraceError: these are no parameters with 128 bits of security.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_he import keygen
        >>> def program():
        ...     _, public, _ = mp.device("P0")(keygen)(
        ...         scheme="bfv", degree=4096, primes=(36, 36, 37), plain=20
        ...     )
        ...     return mp.put("P1", public)
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     print(mp.evaluate(sim, program).type)
        he.public_key<"bfv", 4096, (36, 36, 37), 20>@{1}
    """
    parameters = Parameters.from_params((scheme, degree, primes, plain))
    kinds = HePrivateKeyType, HePublicKeyType, HeRelinKeyType
    private, public, relin = (kind(parameters) for kind in kinds)
    assert isinstance(private, HePrivateKeyType)
    assert isinstance(public, HePublicKeyType)
    assert isinstance(relin, HeRelinKeyType)
    return private, public, relin


def _encrypt(scheme: Scheme) -> Feop:
    @simple_op(
        f"{scheme}.encrypt",
        reads=(),
        effects=Effects.FRESH,
        inputs=(_TENSOR, _PUBLIC),
        outputs=(_CIPHERTEXT,),
    )
    def encrypt(
        x: TensorType, key: HePublicKeyType, *, low: Limit, high: Limit
    ) -> HeCiphertextType:
        """Encrypt a tensor by columns: a ciphertext for each, with the rows in its slots.

        Args:
            x: numbers of shape ``[rows, …]``; of BFV integers.
            key: a public key at the same party.
            low: no number is smaller. It is checked before one is encrypted.
            high: no number is larger.

        Returns:
            A ``he.ciphertext<…>``.

        Raises:
            TraceError: these are no numbers, or have no rows.
            KernelError: a number is not within the range. Raised at the party.
        """
        _check_scheme(scheme, key.parameters)
        name = x.dtype.value
        if not name.startswith(("i", "u", "bool") if scheme == "bfv" else ("i", "u", "f", "bool")):
            raise TypeError(f"{scheme} encrypts {_NUMBERS[scheme]}, got {x}")
        if not all(isinstance(end, int | float) for end in (low, high)):
            raise TypeError(f"a range is of two numbers, got {low!r} and {high!r}")
        if scheme == "bfv" and not (type(low) is int and type(high) is int):
            raise TypeError(f"a range of integers is of integers, got {low!r} and {high!r}")
        made = fresh(x, key.parameters, low, high)
        _check_modulus(made)
        return made

    return encrypt


def _decrypt(scheme: Scheme) -> Feop:
    @simple_op(
        f"{scheme}.decrypt",
        reads=(),
        effects=Effects.NONE,
        interfaces=[RangeRule(_ranges_of_decrypted)],
        inputs=(_CIPHERTEXT, _PRIVATE),
        outputs=(_TENSOR,),
    )
    def decrypt(x: HeCiphertextType, key: HePrivateKeyType) -> TensorType:
        """Decrypt a tensor.

        A result of CKKS tells what its noise does, of what it was computed from: who gets it
        and has the ciphertext can compute the private key (Li, Micciancio, EUROCRYPT 2021).

        Args:
            x: a ``he.ciphertext<…>``.
            key: its private key, at the same party.

        Returns:
            Integers of BFV, which are exact; numbers of CKKS, off by the ``error`` of the type.

        Raises:
            TraceError: it is under another key.
            KernelError: a number is beyond its type, or no noise budget is left: somebody gave
                another ciphertext than the program says. Raised at the party.
        """
        _check_scheme(scheme, x.parameters)
        if x.parameters != key.parameters:
            raise ValueError(f"it is encrypted under {x.parameters}, and the key is {key}")
        if not x.inner.dtype.value.startswith("f") and x.error >= 0.5:
            raise ValueError(f"integers are off by {x.error}: compute them in BFV")
        return x.inner

    return decrypt


_NUMBERS = {"bfv": "integers", "ckks": "numbers"}


def _ranges_of_decrypted(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    kind = op.inputs[0].type
    assert isinstance(kind, HeCiphertextType)
    slack = 2 * kind.error + 1e-6 * max(abs(kind.low), abs(kind.high))
    slack = 0 if kind.parameters.scheme == "bfv" else slack
    return OpRanges([Interval(kind.low - slack, kind.high + slack)])


def _check_scheme(scheme: Scheme, parameters: Parameters) -> None:
    if parameters.scheme != scheme:
        raise TypeError(f"it takes what is of {scheme}, got one of {parameters.scheme}")


def _check_modulus(made: HeCiphertextType) -> None:
    """Check that numbers of BFV are within the plain modulus, which wraps."""
    largest = max(abs(made.low), abs(made.high))
    if made.parameters.scheme == "bfv" and 2 * largest + 1 >= 2 ** (made.parameters.plain - 1):
        raise ValueError(
            f"numbers up to {largest:,} do not fit in a plain modulus of {made.parameters.plain} "
            "bits"
        )


def _infer_run(op: Operation, world: Mask) -> Sequence[AnyType]:
    *operands, public, relin = [value.type for value in op.inputs]
    parameters = parameters_of(operands)
    _check_scheme(_scheme(op), parameters)
    if (public, relin) != (HePublicKeyType(parameters), HeRelinKeyType(parameters)):
        raise TypeError(
            f"operands are encrypted under {parameters}, and the keys are {public} and {relin}: "
            "what is computed together is under one key"
        )
    made = results_of(op.attrs["program"]["code"], parameters, operands_of(operands, op.attrs))
    for each in made:
        _check_modulus(each)
    return made


def _scheme(op: Operation) -> Scheme:
    return "bfv" if op.opcode.startswith("bfv.") else "ckks"


def parameters_of(operands: Sequence[AnyType]) -> Parameters:
    """Return the parameters of encrypted operands.

    Raises:
        TypeError: none is encrypted, or they are under several.
    """
    found = {each.parameters: None for each in operands if isinstance(each, HeCiphertextType)}
    if len(found) != 1:
        raise TypeError(
            f"it takes operands that are encrypted under one key, got {len(found)} of them"
        )
    return next(iter(found))


def operands_of(operands: Sequence[AnyType], attrs: Any) -> tuple[Given, ...]:
    """Return what is known of the operands of a function.

    Raises:
        TypeError: one is neither encrypted nor a tensor, or there is no range for it.
    """
    ranges = attrs["ranges"]
    plain = [each for each in operands if isinstance(each, TensorType)]
    if not isinstance(ranges, tuple) or len(ranges) != len(plain):
        raise TypeError(f"each plain operand has a range: {len(plain)} of them, got {ranges!r}")
    given, ends = [], iter(ranges)
    for each in operands:
        if isinstance(each, HeCiphertextType):
            given.append(Given(each.inner, each.low, each.high, each, True))
            continue
        low, high = checked_range(next(ends))
        if not isinstance(each, TensorType):
            raise TypeError(f"it takes ciphertexts and tensors, got {each}")
        given.append(Given(each, low, high))
    rows = {each.sealed.rows for each in given if each.sealed is not None}
    if len(rows) > 1:
        raise TypeError(f"encrypted operands have the same rows, got {sorted(rows)} of them")
    return tuple(given)


def checked_range(ends: object) -> tuple[float, float]:
    """Return a range, which may come from a peer.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(ends, tuple) or len(ends) != 2:
        raise TypeError(f"a range is of two numbers, got {ends!r}")
    low, high = ends
    if not all(type(end) in (int, float) and math.isfinite(end) for end in ends) or low > high:
        raise TypeError(f"a range is of two numbers, from low to high, got {ends!r}")
    return low, high


def _constants(op: Operation) -> Sequence[Constant]:
    return constants_of_code(op.attrs["program"]["code"])


def _run_op(scheme: Scheme) -> OpDef:
    return OpDef(
        f"{scheme}.run",
        _infer_run,
        attrs={
            "program": Attr(dict, doc="attributes of jax.run: the StableHLO, and how it was made"),
            "ranges": Attr(tuple, doc="of each plain operand its smallest and largest number"),
        },
        doc="Runs a function on ciphertexts, and on plain operands of who has them.",
        effects=Effects.FRESH,
        reads=(),
        interfaces=[ConstantsRule(_constants)],
    )


def _run(scheme: Scheme) -> Feop:
    @feop(
        name=f"{scheme}.run",
        dialects=(scheme,),
        execution_model="single_rank",
        targets=("ciphertext",),
        inputs=({"kind": "Any", "visibility": ("PUBLIC", "PRIVATE", "SECRET")},),
        outputs=(_CIPHERTEXT,),
    )
    def run(*operands: Any, program: Any, ranges: Any) -> FeProgram:
        """Run a function on ciphertexts, and on plain operands of who has them.

        A device of kind ``HE`` does it.

        Args:
            *operands: ciphertexts under one key, tensors, the public key, and the relinearization
                key.
            program: the attributes of ``jax.run``.
            ranges: of each tensor its smallest and largest number.

        Returns:
            A ``he.ciphertext<…>`` for each result.

        Raises:
            TraceError: ciphertexts have no such op, or there is no room for it.
            KernelError: a plain number is not within its range. Raised at the party.
        """
        types = tuple(each.base_type for each in operands)
        attrs = {"program": dict(program), "ranges": ranges}
        given = operands_of(types[:-2], attrs)
        made = results_of(program["code"], parameters_of(types[:-2]), given)
        pfunc = PFunction(f"{scheme}.run", types, made, attrs)
        return FeProgram(pfunc, flatten(operands)[1], flatten(tuple(made))[1], operands)

    return run


BFV: Sequence[Feop] = (_encrypt("bfv"), _decrypt("bfv"), _run("bfv"))
CKKS: Sequence[Feop] = (_encrypt("ckks"), _decrypt("ckks"), _run("ckks"))
"""Feops of each scheme."""

BFV_RUN, CKKS_RUN = _run_op("bfv"), _run_op("ckks")


def checked(x: np.ndarray[Any, Any], low: float, high: float) -> bool:
    """Return whether all numbers are within a range; NaN is not."""
    return bool(((x >= low) & (x <= high)).all())
