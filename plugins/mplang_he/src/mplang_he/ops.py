"""Ops of the dialects ``he``, ``bfv`` and ``ckks``. Imports no cryptographic library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mplang_analysis import Constant, ConstantsRule, Interval, OpRanges, RangeRule
from mplang_stablehlo import constants_of_code

from mplang_core import FeProgram, Mask, PFunction, TensorType, feop, simple_op
from mplang_core.ext import AnyType, Attr, Effects, Feop, OpDef, Operation, flatten
from mplang_he.circuit import FunctionOperand, fresh, results_of, rolled, summed
from mplang_he.parameters import Parameters, Scheme, sum_steps
from mplang_he.types import (
    HeCiphertextType,
    HePrivateKeyType,
    HePublicKeyType,
    HeRelinKeyType,
    HeRotationKeyType,
    is_number,
)

Limit: TypeAlias = int | float

MAX_PLAIN = 1 << 21
"""Numbers of a plain operand at most."""

_PRIVATE = {"kind": HePrivateKeyType.name, "visibility": ("PRIVATE",)}
_PUBLIC = {"kind": HePublicKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_RELIN = {"kind": HeRelinKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
_ROTATION = {"kind": HeRotationKeyType.name, "visibility": ("PUBLIC", "PRIVATE")}
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
        TraceError: these are not parameters with 128 bits of security.

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
        he.public_key<"bfv", 4096, [36, 36, 37], 20>@{1}
    """
    parameters = Parameters.from_params((scheme, degree, primes, plain))
    kinds = HePrivateKeyType, HePublicKeyType, HeRelinKeyType
    private, public, relin = (kind(parameters) for kind in kinds)
    assert isinstance(private, HePrivateKeyType)
    assert isinstance(public, HePublicKeyType)
    assert isinstance(relin, HeRelinKeyType)
    return private, public, relin


@simple_op(
    "he.rotation_keys",
    reads=(),
    total=True,
    effects=Effects.FRESH,
    inputs=(_PRIVATE,),
    outputs=(_ROTATION,),
)
def rotation_keys(private: HePrivateKeyType, *, steps: tuple[int, ...]) -> HeRotationKeyType:
    """Generate the keys by which slots are rotated by some steps: two megabytes for each.

    Args:
        private: a private key.
        steps: by how many slots; 0 exchanges the halves of BFV.

    Returns:
        A ``he.rotation_key<…>``, which any party may have.

    Raises:
        TraceError: these are not steps.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_he import keygen
        >>> from mplang_he.ops import rotation_keys
        >>> def program():
        ...     small = {"scheme": "bfv", "degree": 4096, "primes": (36, 36, 37), "plain": 20}
        ...     private, _, _ = mp.device("P0")(keygen)(**small)
        ...     return mp.device("P0")(rotation_keys)(private, steps=(1, 0))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     print(mp.evaluate(sim, program).type)
        he.rotation_key<"bfv", 4096, [36, 36, 37], 20, [1, 0]>@{0}
    """
    return HeRotationKeyType(private.parameters, steps)


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
            TraceError: these are not numbers, or have no rows.
            KernelError: a number is not within the range. Raised at the party.

        Example:
            >>> import mplang_core as mp
            >>> from mplang_he import bfv, keygen
            >>> small = {"scheme": "bfv", "degree": 4096, "primes": (36, 36, 37), "plain": 20}
            >>> def program():
            ...     private, public, _ = mp.device("P0")(keygen)(**small)
            ...     x = mp.device("P0")(bfv.encrypt)(mp.put("P0", [3, -4]), public, low=-9, high=9)
            ...     return mp.device("P0")(bfv.decrypt)(x, private)
            >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
            ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
            [3, -4]
        """
        _check_scheme(scheme, key.parameters)
        name = x.dtype.value
        if not name.startswith(("i", "u", "bool") if scheme == "bfv" else ("i", "u", "f", "bool")):
            raise TypeError(f"{scheme} encrypts {_NUMBERS[scheme]}, got {x}")
        if not all(isinstance(end, int | float) for end in (low, high)):
            raise TypeError(f"a range is of two numbers, got {low!r} and {high!r}")
        if not name.startswith("f") and max(abs(low), abs(high)) > WHOLE[scheme]:
            raise ValueError(f"{scheme} has integers up to {WHOLE[scheme]:,}, got {low} to {high}")
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

        Example:
            >>> import mplang_core as mp
            >>> from mplang_he import bfv, keygen
            >>> small = {"scheme": "bfv", "degree": 4096, "primes": (36, 36, 37), "plain": 20}
            >>> def program():
            ...     private, public, _ = mp.device("P0")(keygen)(**small)
            ...     x = mp.device("P0")(bfv.encrypt)(mp.put("P0", [3, -4]), public, low=-9, high=9)
            ...     return mp.device("P0")(bfv.decrypt)(x, private)
            >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
            ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
            [3, -4]
        """
        _check_scheme(scheme, x.parameters)
        if x.parameters != key.parameters:
            raise ValueError(f"it is encrypted under {x.parameters}, and the key is {key}")
        if not x.inner.dtype.value.startswith("f") and x.error >= 0.5:
            raise ValueError(f"integers are off by {x.error}: compute them in BFV")
        return x.inner

    return decrypt


def _sum(scheme: Scheme) -> Feop:
    @simple_op(
        f"{scheme}.sum",
        reads=(),
        effects=Effects.FRESH,
        inputs=(_CIPHERTEXT, _ROTATION, _PUBLIC),
        outputs=(_CIPHERTEXT,),
    )
    def sum(
        x: HeCiphertextType, rotation: HeRotationKeyType, key: HePublicKeyType
    ) -> HeCiphertextType:
        """Add up the rows of an encrypted tensor; :func:`mplang_he.sum_rows` brings the keys.

        Args:
            x: a ``he.ciphertext<…>`` of at least one level.
            rotation: keys of all steps by which slots are added up.
            key: the public key.

        Returns:
            A ``he.ciphertext<…>`` of one row.

        Raises:
            TraceError: it is under other keys, or there is no room for the sum.

        Example:
            >>> import numpy as np
            >>> import mplang_core as mp
            >>> nodes = [{"name": "clinic"}, {"name": "vendor"}]
            >>> h = {"kind": "HE", "members": [0, 1], "config": {"holder": 0, "limit": 100.0}}
            >>> devices = {"C": {"kind": "PPU", "members": [0]}, "H": h}
            >>> cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
            >>> def program():
            ...     x = mp.seal(mp.put("C", np.array([3, 4, 5])), to="H")
            ...     return mp.reveal(mp.he.sum_rows(x), to="C")
            >>> with mp.Simulator(cluster) as sim:
            ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
            [12]
        """
        _check_keys(scheme, x, rotation, key)
        if rotation.steps != sum_steps(x.parameters):
            raise ValueError(f"rows are added up by steps {sum_steps(x.parameters)}")
        made = summed(x)
        _check_modulus(made)
        return made

    return sum


def _roll(scheme: Scheme) -> Feop:
    @simple_op(
        f"{scheme}.roll",
        reads=(),
        effects=Effects.FRESH,
        inputs=(_CIPHERTEXT, _ROTATION, _PUBLIC),
        outputs=(_CIPHERTEXT,),
    )
    def roll(
        x: HeCiphertextType, rotation: HeRotationKeyType, key: HePublicKeyType, *, by: int
    ) -> HeCiphertextType:
        """Move the rows of an encrypted tensor in a circle; see :func:`mplang_he.rotate_rows`.

        Args:
            x: a ``he.ciphertext<…>`` of at least one level.
            rotation: keys of the steps ``by`` and ``by - rows``.
            key: the public key.
            by: which row becomes the first one.

        Returns:
            A ``he.ciphertext<…>`` of the same rows.

        Raises:
            TraceError: it is under other keys, has no room, or no such row.

        Example:
            >>> import numpy as np
            >>> import mplang_core as mp
            >>> nodes = [{"name": "clinic"}, {"name": "vendor"}]
            >>> h = {"kind": "HE", "members": [0, 1], "config": {"holder": 0, "limit": 100.0}}
            >>> devices = {"C": {"kind": "PPU", "members": [0]}, "H": h}
            >>> cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
            >>> def program():
            ...     x = mp.seal(mp.put("C", np.array([3, 4, 5])), to="H")
            ...     return mp.reveal(mp.he.rotate_rows(x, 1), to="C")
            >>> with mp.Simulator(cluster) as sim:
            ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
            [4, 5, 3]
        """
        _check_keys(scheme, x, rotation, key)
        if type(by) is not int or not 0 < by < x.rows:
            raise ValueError(f"by is a row from 1 to {x.rows - 1}, got {by!r}")
        if rotation.steps != (by, by - x.rows):
            raise ValueError(f"rows are moved by steps {(by, by - x.rows)}, got {rotation.steps}")
        return rolled(x)

    return roll


def _check_keys(
    scheme: Scheme, x: HeCiphertextType, rotation: HeRotationKeyType, key: HePublicKeyType
) -> None:
    _check_scheme(scheme, x.parameters)
    if not x.parameters == rotation.parameters == key.parameters:
        raise ValueError(f"it is encrypted under {x.parameters}, and the keys are others")


WHOLE = {"bfv": 2**62, "ckks": 2**53}
"""Integers that can be encrypted, either way."""

_NUMBERS = {"bfv": "integers", "ckks": "numbers"}


def _ranges_of_decrypted(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    kind = op.inputs[0].type
    assert isinstance(kind, HeCiphertextType)
    slack = 2 * kind.error + 1e-6 * max(abs(kind.low), abs(kind.high))
    slack = 0 if kind.parameters.scheme == "bfv" else slack
    return OpRanges([Interval(kind.low - slack, kind.high + slack)])


def _check_scheme(scheme: Scheme, parameters: Parameters) -> None:
    if parameters.scheme != scheme:
        raise TypeError(f"it takes ciphertexts of {scheme}, got one of {parameters.scheme}")


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
    floats = [each for each in operands if isinstance(each, TensorType) and _is_float(each)]
    if _scheme(op) == "bfv" and floats:
        raise TypeError(f"BFV has integers alone, got an operand {floats[0]}")
    if (public, relin) != (HePublicKeyType(parameters), HeRelinKeyType(parameters)):
        raise TypeError(
            f"operands are encrypted under {parameters}, and the keys are {public} and {relin}: "
            "operands of one computation need the same key"
        )
    made = results_of(op.attrs["code"], parameters, operands_of(operands, op.attrs["ranges"]))
    for each in made:
        _check_modulus(each)
    return made


def _is_float(kind: TensorType) -> bool:
    return kind.dtype.value.startswith("f")


def _scheme(op: Operation) -> Scheme:
    return "bfv" if op.opcode.startswith("bfv.") else "ckks"


def parameters_of(operands: Sequence[AnyType]) -> Parameters:
    """Return the parameters of encrypted operands.

    Raises:
        TypeError: none is encrypted, or they are under several.
    """
    under = {each.parameters: None for each in operands if isinstance(each, HeCiphertextType)}
    if len(under) != 1:
        raise TypeError(
            f"it takes operands that are encrypted under one key, got {len(under)} of them"
        )
    return next(iter(under))


def operands_of(operands: Sequence[AnyType], ranges: object) -> tuple[FunctionOperand, ...]:
    """Return what is known of the operands of a function.

    Raises:
        TypeError: one is neither encrypted nor a tensor, or there is no range for it.
    """
    plain = [each for each in operands if isinstance(each, TensorType)]
    if not isinstance(ranges, tuple) or len(ranges) != len(plain):
        raise TypeError(f"each plain operand has a range: {len(plain)} of them, got {ranges!r}")
    known, ends = [], iter(ranges)
    for each in operands:
        if isinstance(each, HeCiphertextType):
            known.append(FunctionOperand(each.inner, each.low, each.high, each, True))
            continue
        low, high = checked_range(next(ends))
        if not isinstance(each, TensorType) or each.dtype.value.startswith(("c", "bf")):
            raise TypeError(f"it takes ciphertexts and tensors of real numbers, got {each}")
        whole = type(low) is int and type(high) is int and max(-low, high) < 2**63
        if not _is_float(each) and not whole:
            raise TypeError(f"a range of integers is of integers below 2**63, got {low}, {high}")
        if math.prod(each.shape) > MAX_PLAIN:
            raise TypeError(f"a plain operand has {MAX_PLAIN:,} numbers at most, got {each}")
        known.append(FunctionOperand(each, low, high))
    rows = {each.sealed.rows for each in known if each.sealed is not None}
    if len(rows) > 1:
        raise TypeError(f"encrypted operands have the same rows, got {sorted(rows)} of them")
    return tuple(known)


def checked_range(ends: object) -> tuple[float, float]:
    """Return a range, which may come from a peer.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(ends, tuple) or len(ends) != 2:
        raise TypeError(f"a range is of two numbers, got {ends!r}")
    low, high = ends
    if not all(type(end) in (int, float) and is_number(end) for end in ends) or low > high:
        raise TypeError(f"a range is of two numbers, from low to high, got {ends!r}")
    return low, high


def _constants(op: Operation) -> Sequence[Constant]:
    return constants_of_code(op.attrs["code"])


def _run_op(scheme: Scheme) -> OpDef:
    return OpDef(
        f"{scheme}.run",
        _infer_run,
        attrs={
            "code": Attr(bytes, doc="StableHLO text, zlib-compressed"),
            "x64": Attr(bool, doc="whether 64-bit types stay as they are"),
            "jax": Attr(str, doc="the version of JAX that made it"),
            "stablehlo": Attr(str, doc="the version of StableHLO that it is written in"),
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
        inputs=({"kind": "Any", "visibility": ("PUBLIC", "PRIVATE", "SECRET")},),
        outputs=(_CIPHERTEXT,),
    )
    def run(*operands: Any, ranges: Any, **program: Any) -> FeProgram:
        """Run a function on ciphertexts, and on plain operands of who has them.

        A device of kind ``HE`` does it.

        Args:
            *operands: ciphertexts under one key, tensors, the public key, and the relinearization
                key.
            ranges: of each tensor its smallest and largest number.
            **program: the attributes of ``jax.run``, with the code of the function.

        Returns:
            A ``he.ciphertext<…>`` for each result.

        Raises:
            TraceError: ciphertexts have no such op, or there is no room for it.
            KernelError: a plain number is not within its range. Raised at the party.

        Example:
            >>> import mplang_core as mp
            >>> from mplang_core import FeSignature, TensorType
            >>> from mplang_he import bfv, keygen
            >>> from mplang_jax import jax_compile
            >>> small = {"scheme": "bfv", "degree": 8192, "primes": (43, 43, 44, 44, 44)}
            >>> square = jax_compile(lambda x: x * x, FeSignature((TensorType("i64", (2,)),)))
            >>> def program():
            ...     private, public, relin = mp.device("P0")(keygen)(**small, plain=24)
            ...     x = mp.device("P0")(bfv.encrypt)(mp.put("P0", [3, -4]), public, low=-9, high=9)
            ...     there, keys = mp.put("P1", x), (mp.put("P1", public), mp.put("P1", relin))
            ...     y = mp.device("P1")(bfv.run)(there, *keys, ranges=(), **square.pfunc.attrs)
            ...     return mp.device("P0")(bfv.decrypt)(mp.put("P0", y), private)
            >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
            ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
            [9, 16]
        """
        types = tuple(each.base_type for each in operands)
        known = operands_of(types[:-2], ranges)
        made = results_of(program["code"], parameters_of(types[:-2]), known)
        pfunc = PFunction(f"{scheme}.run", types, made, {**program, "ranges": ranges})
        return FeProgram(pfunc, flatten(operands)[1], flatten(tuple(made))[1], operands)

    return run


class SchemeOps(NamedTuple):
    """Feops of a scheme."""

    encrypt: Feop
    decrypt: Feop
    run: Feop
    sum: Feop
    roll: Feop


def _feops(scheme: Scheme) -> SchemeOps:
    return SchemeOps(*(make(scheme) for make in (_encrypt, _decrypt, _run, _sum, _roll)))


BFV, CKKS = _feops("bfv"), _feops("ckks")
"""Feops of each scheme."""


def ops_of(parameters: Parameters) -> SchemeOps:
    """Return the feops of the scheme of parameters."""
    return CKKS if parameters.scheme == "ckks" else BFV


BFV_RUN, CKKS_RUN = _run_op("bfv"), _run_op("ckks")


def checked(x: np.ndarray[Any, Any], low: float, high: float) -> bool:
    """Return whether all numbers are within a range; NaN is not."""
    x = x.astype(np.float64) if x.dtype.kind == "f" else x  # compared as they are encrypted
    return bool(((x >= low) & (x <= high)).all())
