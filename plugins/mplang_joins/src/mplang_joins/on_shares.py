"""Steps of all joins: salts at the parties that bring tables, and functions of arrays on an SPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_spu import ShareType, SpuConfig, config_of, resolve_config

import mplang_core as mp
from mplang_core import FeProgram, MPObject, PFunction, TensorType, fe_materialize
from mplang_core.ext import Device, Operation, TraceError, at, flatten, run_program, unflatten
from mplang_joins.ops import salt


def salts(devices: Sequence[str]) -> list[MPObject]:
    """Return what the hash of one join begins with, at each party: the first one draws it.

    Args:
        devices: the devices of the parties.
    """
    drawn = mp.device(devices[0])(salt)()
    return [mp.put(device, drawn) for device in devices]


def on_shares(spu: Device, fn: Callable[..., Any], *args: Any) -> Any:
    """Run a function of arrays on an SPU, by a sort whose messages do not depend on data.

    Args:
        spu: the SPU.
        fn: the function.
        *args: its arguments, which are there.

    Returns:
        The nest of its results, which are there.
    """
    check_field(spu)
    program = fe_materialize(
        fn,
        *args,
        kind=spu.kind,
        members=len(spu.mask),
        config=oblivious(spu.config),
        frontends=spu.frontends,
    )
    leaves, spec = flatten(run_program(program, spu.mask))
    return unflatten(spec, [each.ctx.place(each, spu) for each in leaves])


def run_op(
    opcode: str, shared: Sequence[MPObject], plain: Sequence[TensorType],
    attrs: Mapping[str, object], spu: Device,
) -> list[MPObject]:  # fmt: skip
    """Run an op on shares whose code the members of an SPU make of its attributes.

    Args:
        opcode: the op.
        shared: its operands, which are shares.
        plain: the types of what its results are shares of.
        attrs: its attributes beside ``parties`` and ``config``.
        spu: the SPU.

    Returns:
        Its results, on the SPU.
    """
    config = resolve_config(oblivious(spu.config), spu.mask)
    outs = tuple(ShareType.of(kind, config) for kind in plain)
    about = {**attrs, "parties": spu.mask, "config": config.attrs()}
    pfunc = PFunction(opcode, tuple(each.base_type for each in shared), outs, about)
    trees = flatten(tuple(shared))[1], flatten((0,) * len(outs))[1]
    made = flatten(run_program(FeProgram(pfunc, *trees, tuple(shared)), spu.mask))[0]
    return [each.ctx.place(each, spu) for each in made]


def shares_of(op: Operation) -> tuple[ShareType, SpuConfig]:
    """Return the type of an op's first operand, and the configuration that it is shared by.

    Raises:
        TypeError: it is none of shares, or shared by another configuration.
        ValueError: a sort by that configuration would tell something.
    """
    kind = op.inputs[0].type
    if not isinstance(kind, ShareType) or kind.parties != op.attrs["parties"]:
        raise TypeError(f"its operands are shares of {op.attrs['parties']}, got {kind}")
    config = config_of(op)
    if ShareType.of(kind.plain, config) != kind:
        raise TypeError(f"its operands are shared by another configuration, got {kind}")
    if config != oblivious(config):
        raise ValueError(f"its sort tells nothing, unlike the method {config.sort_method!r}")
    return kind, config


def check_field(spu: Device) -> None:
    """Refuse an SPU whose field has no room for tokens.

    Raises:
        TraceError: it has not; shows the line.
    """
    if spu.config.field == "FM32":
        raise TraceError(
            f"{at()}{spu.name}: FM32 has no room for keys; take FM64 or FM128", code="T018"
        )


def oblivious(config: SpuConfig) -> SpuConfig:
    """Return the configuration that joins run by: with a sort whose messages tell nothing."""
    return config.with_oblivious_sort()
