"""Functions on an HE device: what of their operands is encrypted, where, and with what room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import mplang_core as mp
from mplang_core import FeProgram, Form, Mask, MPObject, TensorType, fe_materialize
from mplang_core.ext import (
    Device,
    DeviceKind,
    FeCapabilityError,
    Operand,
    TraceError,
    at,
    caller,
    device_kinds,
    flatten,
    run_program,
    the_holder,
    unflatten,
)
from mplang_he.circuit import FunctionOperand, parameters_for
from mplang_he.config import HeConfig
from mplang_he.keys import keys_of, known_keys
from mplang_he.operands import (
    check_rows,
    encrypted,
    is_at_evaluator,
    range_of,
    scheme_of,
    tensor_of,
)
from mplang_he.ops import ops_of
from mplang_he.parameters import Parameters, ResultNeeds
from mplang_he.types import HeCiphertextType


def takes(device: Device, values: Sequence[MPObject]) -> bool:
    """Return whether a function of values runs on a device: any function on one of kind HE."""
    return isinstance(device.config, HeConfig)


def run(
    device: Device, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
    *, spare: object = 0,
) -> Any:  # fmt: skip
    """Run a function of arrays on ciphertexts, at the evaluator.

    Operands that the evaluator has in plain stay plain; others are encrypted at their parties.

    Args:
        device: of kind HE.
        fn: a function of arrays.
        args: its arguments: values, nests of them, literals.
        kwargs: its keyword arguments, literals.
        spare: products that its results can still be part of, one after the other.

    Returns:
        The nest of its results, encrypted at the evaluator.

    Raises:
        TraceError: ciphertexts cannot do an op, or no parameters have room for it; shows the line
            of it, and the devices that could.
    """
    if type(spare) is not int or not 0 <= spare <= 12:
        raise TraceError(
            f"{at()}{device.name}: spare is a number of products, got {spare!r}", code="T012"
        )
    program = _compiled(device, fn, args, kwargs)
    operands = [_operand(device, each) for each in _inputs(device, program)]
    code = program.pfunc.attrs["code"]
    parameters = _parameters(device, code, operands, spare)
    ctx = mp.cur_ctx()
    keys = keys_of(ctx, device, parameters)
    evaluator = keys.evaluator
    there = [
        each.value
        if each.owner is None
        else encrypted(each.value, each.owner, keys, (each.known.low, each.known.high))
        for each in operands
    ]
    ends = tuple((each.known.low, each.known.high) for each in operands if not each.known.encrypted)
    try:
        made = ops_of(parameters).run(
            *there,
            keys.public_at(evaluator),
            keys.relin_at(evaluator),
            ranges=ends,
            **program.pfunc.attrs,
        )
    except (ValueError, TypeError) as error:
        _refuse(device, code, error)
    return unflatten(program.out_tree, list(run_program(made, Mask.of(evaluator))))


@dataclass(frozen=True, slots=True)
class _Operand:
    """Operand of a function.

    Attributes:
        value: it.
        known: what is known of it.
        owner: who encrypts it; ``None`` if it is encrypted, or plain at the evaluator.
    """

    value: MPObject
    known: FunctionOperand
    owner: int | None = None


def _compiled(
    device: Device, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> FeProgram:
    """Compile a function as one of plain arrays."""
    leaves, spec = flatten((tuple(args), dict(kwargs)))
    here = [_plain_operand(device, each) for each in leaves]
    positional, named = unflatten(spec, here)
    program = fe_materialize(fn, *positional, frontends=device.frontends, **named)
    if program.pfunc.fn_type != "jax.run":
        raise FeCapabilityError(
            f"{at()}{device} runs functions of arrays, which JAX compiles; got one of "
            f"{program.pfunc.fn_type}"
        )
    return program


def _plain_operand(device: Device, leaf: Any) -> Any:
    if isinstance(leaf, MPObject):
        kind = leaf.base_type
        plain = kind.inner if isinstance(kind, HeCiphertextType) else kind
        if not isinstance(plain, TensorType):
            raise TraceError(f"{at()}{device} takes tensors, got {leaf!s}", code="T012")
        return Operand(plain, leaf)
    if hasattr(leaf, "shape"):
        made = mp.constant(leaf, parties=device.config.evaluator)
        return Operand(made.base_type, made)
    return leaf


def _inputs(device: Device, program: FeProgram) -> list[MPObject]:
    """Return the operands of a program, and the arrays that it closes over, which are public."""
    values = [each.value if isinstance(each, Operand) else each for each in program.inputs]
    evaluator = device.config.evaluator
    return [*values, *(mp.constant(each, parties=evaluator) for each in program.consts)]


def _operand(device: Device, value: MPObject) -> _Operand:
    kind = value.base_type
    if isinstance(kind, HeCiphertextType):
        if value.device != device:
            raise TraceError(
                f"{at()}{value!s} is on {value.device}, and its key is not that of {device}: "
                "operands of one computation need the same key",
                code="T012",
            )
        if known_keys(value.ctx, device, kind.parameters) is None:
            raise TraceError(
                f"{at()}the key of {value!s} was made in another program, or within a branch or "
                "loop: compute on it there",
                code="T012",
            )
        return _Operand(value, FunctionOperand(kind.inner, kind.low, kind.high, kind, True))
    kind = tensor_of(value, device)
    plain = is_at_evaluator(value, device)
    if not plain:
        check_rows(value, device)
    known = FunctionOperand(kind, *range_of(value, kind, device), encrypted=not plain)
    return _Operand(value, known, None if plain else the_holder(value))


def _parameters(
    device: Device, code: bytes, operands: Sequence[_Operand], spare: int
) -> Parameters:
    """Return those of ciphertexts among the operands, or the smallest ones that have room."""
    sealed = [each.known.sealed for each in operands if each.known.sealed is not None]
    if sealed:
        return sealed[0].parameters
    if not any(each.known.encrypted for each in operands):
        raise TraceError(
            f"{at()}{device}: its evaluator has all operands in plain, so there is nothing to "
            "encrypt: run the function on its own device",
            code="T012",
        )
    try:
        scheme = scheme_of((each.known.type for each in operands), code)
        known = tuple(each.known for each in operands)
        wanted = ResultNeeds(device.config.precision, spare, device.config.limit or 0.0)
        return parameters_for(code, scheme, known, wanted)
    except ValueError as error:
        _refuse(device, code, error)


def _refuse(device: Device, code: bytes, error: Exception) -> NoReturn:
    """Raise the error of a function that ciphertexts cannot run, with its line."""
    from mplang_stablehlo import read
    from mplang_stablehlo.ext import line_at, parse

    index = getattr(error, "index", None)
    line = None if index is None else line_at(parse(read(code)), code, index, caller())
    devices: Mapping[str, Any] = getattr(mp.cur_ctx().cluster_spec, "devices", {})
    others = [name for name, spec in devices.items() if _compiles(device_kinds.get(spec.kind))]
    could = f". {' or '.join(others)} could, on shares" if others else ""
    prefix = at() if line is None else f"{line}: "
    raise TraceError(f"{prefix}{device} cannot run this: {error}{could}", code="T012") from None


def _compiles(kind: DeviceKind | None) -> bool:
    """Return whether a kind compiles functions of arrays to ones on shares."""
    lowering = None if kind is None else kind.lowering
    return kind is not None and kind.form is Form.SHARE and lowering is not None
