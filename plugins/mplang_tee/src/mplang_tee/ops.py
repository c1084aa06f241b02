"""Ops of the dialect ``tee``: sessions with enclaves, ways in and out, and functions inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mplang_analysis import (
    Interval,
    Lineage,
    LineageRule,
    OpRanges,
    RangeRule,
    SideChannelRule,
    SideChannels,
)
from mplang_analysis.ext import payload

from mplang_core import BaseType, Form, Mask, MPType, TensorType, simple_op
from mplang_core.ext import (
    AnyType,
    Attr,
    Call,
    Communicates,
    ControlFlow,
    Effects,
    Labels,
    Level,
    Message,
    OpDef,
    Operation,
    check_parties,
    op_defs,
)
from mplang_tee.types import (
    KEY_BYTES,
    TeeEnclaveKeyType,
    TeeQuoteType,
    TeeSealedType,
    TeeSessionKeyType,
    TeeValueType,
    Way,
)

_PLAIN = {"kind": "Any", "visibility": ("PUBLIC", "PRIVATE")}
_INSIDE = {"kind": TeeValueType.name, "visibility": ("SECRET",)}
_SEALED = {"kind": TeeSealedType.name, "visibility": ("SECRET",)}
_SESSION_KEY = {"kind": TeeSessionKeyType.name, "visibility": ("PRIVATE",)}
_ENCLAVE_KEY = {"kind": TeeEnclaveKeyType.name, "visibility": ("SECRET",)}

MAX_ELEMENTS = 1 << 26
"""Elements of a tensor that is sealed for certain: AES-GCM of the library takes less than 2 GiB."""

HELLO = TensorType("u8", (2 * KEY_BYTES,))
"""What an owner asks with: a nonce, and an X25519 public key."""


def _same_rows(op: Operation, rank: int, operands: Sequence[Lineage | None]) -> Lineage | None:
    return operands[0]


def _same_numbers(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([operands[0]])


AS_IT_WAS = (LineageRule(_same_rows), RangeRule(_same_numbers))
"""The result is the first operand, in another wrapping."""


def _fits(op: Operation) -> bool:
    """Return whether what is sealed has a size that the cipher takes, by its type."""
    inner = payload(cast(BaseType, op.outputs[0].type))
    return isinstance(inner, TensorType) and inner.size < MAX_ELEMENTS


def _size_of_result(op: Operation) -> SideChannels:
    """Return what the party of an enclave learns by the size of what it carries out of it."""
    is_tensor = isinstance(payload(cast(BaseType, op.inputs[0].type)), TensorType)
    return SideChannels() if is_tensor else SideChannels(sizes=(0,))


# -- the way in


@simple_op(
    "tee.seal",
    version="1",
    reads=(),
    total=_fits,
    effects=Effects.FRESH,
    execution_model="single_rank",
    interfaces=AS_IT_WAS,
    inputs=(_PLAIN, _SESSION_KEY),
    outputs=(_SEALED,),
)
def seal(x: BaseType, key: TeeSessionKeyType, *, slot: int) -> TeeSealedType:
    """Encrypt a value for an enclave that its owner has verified, by AES-256-GCM (SP 800-38D).

    ``mp.seal(x, to="T")`` and calls of functions on a device of kind ``TEE`` do it.

    Args:
        x: a value of any plain type, of less than 2 GiB.
        key: the ``tee.session_key<…>`` of ``tee.attest``.
        slot: which value of the session it is; each has another one.

    Returns:
        A ``tee.sealed<…>``, which only the enclave can open.

    Raises:
        TraceError: it is not plain.
        KernelError: it has 2 GiB or more.

    Example:
        >>> import mplang_core as mp
        >>> cluster = mp.ClusterSpec.from_dict({
        ...     "nodes": [{"name": "bank"}, {"name": "shop"}],
        ...     "devices": {
        ...         "B": {"kind": "PPU", "members": ["bank"]},
        ...         "T": {"kind": "TEE", "members": ["shop"], "config": {"provider": "tdx"}},
        ...     },
        ... })
        >>> def program():
        ...     return mp.reveal(mp.seal(mp.put("B", [1, 2]), to="T"), to="B")
        >>> with mp.Simulator(cluster) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([1, 2])
    """
    return TeeSealedType(x, key.provider, "in")


@simple_op(
    "tee.open",
    version="1",
    reads=(),
    total=True,
    effects=Effects.NONE,
    execution_model="single_rank",
    interfaces=AS_IT_WAS,
    targets=("handle",),
    inputs=(_SEALED, _ENCLAVE_KEY),
    outputs=(_INSIDE,),
)
def open(x: TeeSealedType, key: TeeEnclaveKeyType, *, slot: int) -> TeeValueType:
    """Decrypt what an owner sealed, inside of the enclave.

    Args:
        x: the ``tee.sealed<…>``.
        key: the ``tee.enclave_key<…>`` of ``tee.attest``.
        slot: which value of the session it is.

    Returns:
        A ``tee.value<…>``.

    Raises:
        TraceError: it is of another provider than the key, or goes the other way.
        KernelError: it is of another session or slot, or was changed.

    Example:
        >>> from mplang_core import TensorType, fe_materialize
        >>> from mplang_core.ext import Operand
        >>> from mplang_tee.types import TeeEnclaveKeyType, TeeSealedType
        >>> x = Operand(TeeSealedType(TensorType("f64", (3,)), "tdx", "in"))
        >>> key = Operand(TeeEnclaveKeyType("tdx"))
        >>> print(*fe_materialize(open, x, key, slot=1).pfunc.outs_info)
        tee.value<f64[3], "tdx">
    """
    _check_sealed(x, key.provider, "in")
    return TeeValueType(x.inner, x.provider)


@simple_op(
    "tee.hold",
    version="1",
    reads=(),
    total=True,
    effects=Effects.NONE,
    execution_model="single_rank",
    interfaces=AS_IT_WAS,
    inputs=(_PLAIN,),
    outputs=(_INSIDE,),
)
def hold(x: BaseType, *, provider: str) -> TeeValueType:
    """Take what its own party has in plain into the enclave.

    Args:
        x: a value of any plain type, of the party whose enclave it is, or public.
        provider: who attests the enclave.

    Returns:
        A ``tee.value<…>``.

    Raises:
        TraceError: it is not plain.

    Example:
        >>> from mplang_core import TensorType, fe_materialize
        >>> from mplang_core.ext import Operand
        >>> program = fe_materialize(hold, Operand(TensorType("i64")), provider="tpm")
        >>> print(*program.pfunc.outs_info)
        tee.value<i64[], "tpm">
    """
    return TeeValueType(x, provider)


# -- the way out


@simple_op(
    "tee.release",
    version="1",
    reads=(),
    total=True,
    effects=Effects.NONE,
    execution_model="single_rank",
    interfaces=AS_IT_WAS,
    targets=("handle",),
    inputs=(_INSIDE,),
    outputs=(_PLAIN,),
)
def release(x: TeeValueType) -> BaseType:
    """Release a value to the party of its enclave, which then knows it.

    ``mp.reveal(x, to="P2")`` does it.

    Args:
        x: the ``tee.value<…>``.

    Returns:
        The value, in plain.

    Example:
        >>> from mplang_core import TensorType, fe_materialize
        >>> from mplang_core.ext import Operand
        >>> from mplang_tee.types import TeeValueType
        >>> x = Operand(TeeValueType(TensorType("i64"), "tpm"))
        >>> print(*fe_materialize(release, x).pfunc.outs_info)
        i64[]
    """
    return x.inner


@simple_op(
    "tee.reseal",
    version="1",
    reads=(),
    total=_fits,
    effects=Effects.FRESH,
    execution_model="single_rank",
    interfaces=(*AS_IT_WAS, SideChannelRule(_size_of_result)),
    targets=("handle",),
    inputs=(_INSIDE, _ENCLAVE_KEY),
    outputs=(_SEALED,),
)
def reseal(x: TeeValueType, key: TeeEnclaveKeyType, *, slot: int) -> TeeSealedType:
    """Encrypt a value for the owner of a session, inside of the enclave.

    Args:
        x: the ``tee.value<…>``, of less than 2 GiB.
        key: the ``tee.enclave_key<…>`` of the session.
        slot: which value of the session it is; each has another one.

    Returns:
        A ``tee.sealed<…>``, which only the owner of the session can open.

    Raises:
        TraceError: it is of another provider than the key.
        KernelError: it has 2 GiB or more.

    Example:
        >>> from mplang_core import TensorType, fe_materialize
        >>> from mplang_core.ext import Operand
        >>> from mplang_tee.types import TeeEnclaveKeyType, TeeValueType
        >>> x = Operand(TeeValueType(TensorType("i64"), "tpm"))
        >>> key = Operand(TeeEnclaveKeyType("tpm"))
        >>> print(*fe_materialize(reseal, x, key, slot=1).pfunc.outs_info)
        tee.sealed<i64[], "tpm", "out">
    """
    _check_same(x.provider, key.provider)
    return TeeSealedType(x.inner, x.provider, "out")


@simple_op(
    "tee.unseal",
    version="1",
    reads=(),
    total=True,
    effects=Effects.NONE,
    execution_model="single_rank",
    interfaces=AS_IT_WAS,
    inputs=(_SEALED, _SESSION_KEY),
    outputs=(_PLAIN,),
)
def unseal(x: TeeSealedType, key: TeeSessionKeyType, *, slot: int) -> BaseType:
    """Decrypt what an enclave sealed for this party.

    Args:
        x: the ``tee.sealed<…>``.
        key: the ``tee.session_key<…>`` of the session.
        slot: which value of the session it is.

    Returns:
        The value, in plain.

    Raises:
        TraceError: it is of another provider than the key, or goes the other way.
        KernelError: it is of another session or slot, or was changed.

    Example:
        >>> from mplang_core import TensorType, fe_materialize
        >>> from mplang_core.ext import Operand
        >>> from mplang_tee.types import TeeSealedType, TeeSessionKeyType
        >>> x = Operand(TeeSealedType(TensorType("i64"), "tpm", "out"))
        >>> key = Operand(TeeSessionKeyType("tpm"))
        >>> print(*fe_materialize(unseal, x, key, slot=1).pfunc.outs_info)
        i64[]
    """
    _check_sealed(x, key.provider, "out")
    return x.inner


def _check_sealed(x: TeeSealedType, provider: str, way: Way) -> None:
    _check_same(x.provider, provider)
    if x.way != way:
        raise TypeError(f"it takes what is sealed on its way {way}, got {x}")


def _check_same(one: str, other: str) -> None:
    if one != other:
        raise TypeError(f"it is of the provider {one!r}, and the key of {other!r}")


# -- sessions


class _Attest(Communicates, Labels):
    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return the owner's question, a nonce and a key, and the answer, a key and a quote."""
        owner, enclave = op.attrs["owner"], op.attrs["enclave"]
        quote = TeeQuoteType(op.attrs["provider"])
        return [Message(owner, enclave, None, HELLO), Message(enclave, owner, None, quote, stage=1)]

    def label(self, op: Operation) -> str:
        return f"attest {op.attrs['provider']}"


def _infer_attest(op: Operation, world: Mask) -> Sequence[AnyType]:
    owner, enclave, provider = (op.attrs[name] for name in ("owner", "enclave", "provider"))
    if op.inputs:
        raise TypeError(f"it takes no operands, got {len(op.inputs)}")
    if owner == enclave:
        raise ValueError(f"party {owner} has the enclave itself, and verifies no other")
    check_parties(Mask.of(owner) | Mask.of(enclave), world)
    return [
        MPType(TeeSessionKeyType(provider), Mask.of(owner)),
        MPType(TeeEnclaveKeyType(provider), Mask.of(enclave)),
    ]


ATTEST = OpDef(
    "tee.attest",
    _infer_attest,
    Level.PARTY,
    {
        "owner": Attr(int, doc="rank of the party that verifies"),
        "enclave": Attr(int, doc="rank of the party whose enclave is verified"),
        "provider": Attr(str, doc="who attests it"),
    },
    doc="Has a party verify the quote of another one's enclave, and gives both a key.",
    effects=Effects.FRESH,
    interfaces=[_Attest()],
    reads=(),
    total=True,
)


# -- functions


class _Run(ControlFlow, Labels):
    def control(self, op: Operation) -> Call:
        return Call("do")

    def label(self, op: Operation) -> str:
        return "inside: " + ", ".join(each.opcode for each in op.regions["do"].ops)


def _infer_run(op: Operation, world: Mask) -> Sequence[AnyType]:
    provider, region = op.attrs["provider"], op.regions["do"]
    operands = [_plain_of(value.type, provider) for value in op.inputs]
    taken = [value.type for value in region.inputs]
    if operands != taken:
        shown = ", ".join(map(str, operands)), ", ".join(map(str, taken))
        raise TypeError(f"the function takes ({shown[1]}), got ({shown[0]})")
    for each in region.ops:
        check_inside(each)
    kinds = [value.type for value in region.outputs]
    return [TeeValueType(kind, provider) for kind in kinds if isinstance(kind, BaseType)]


def _plain_of(kind: AnyType, provider: str) -> AnyType:
    """Return the type of an operand within the function.

    Raises:
        TypeError: it is protected in another way, or of another provider.
    """
    if isinstance(kind, TeeValueType):
        _check_same(kind.provider, provider)
        return kind.inner
    if isinstance(kind, BaseType) and kind.form is Form.PLAIN:
        return kind
    raise TypeError(f"an enclave takes what is inside of it, or public, got {kind}")


QUIET = frozenset({
    "ibis.run", "guard.aggregate", "dp.count", "dp.histogram", "dp.mean", "dp.sum",
})  # fmt: skip
"""Ops that declare effects, as passes must not merge them, and that write nothing."""


def check_inside(op: Operation) -> None:
    """Check that an op stays in the enclave: it reads and writes nothing beside its operands.

    Raises:
        TypeError: it may read or write something of its party's, or its results are not plain
            values.
    """
    op_def = op_defs.get(op.opcode)
    quiet = op_def is not None and (op_def.effects is not Effects.ANY or op.opcode in QUIET)
    if op_def is None or not quiet or op_def.reads != () or op.regions or not op.outputs:
        raise TypeError(
            f"{op.opcode} does not run in an enclave: it may read or write something of its party's"
        )
    for value in (*op.inputs, *op.outputs):
        kind = value.type
        if not isinstance(kind, BaseType) or kind.form is not Form.PLAIN:
            raise TypeError(f"{op.opcode} does not run in an enclave: it takes or gives {kind}")


RUN = OpDef(
    "tee.run",
    _infer_run,
    Level.LOCAL,
    {"provider": Attr(str, doc="who attests the enclave")},
    {"do": Level.LOCAL},
    doc="Runs a function inside of the enclave, on what is plain there.",
    effects=Effects.NONE,
    interfaces=[_Run()],
    reads=(),
)
