"""Choice of a field for each program, which devices with ``field: auto`` make.

Shares are of FM128 while a program is traced. If :mod:`mplang_spu.field_reasons` knows nothing
against it, the whole program is rewritten to FM64 before anyone sees it: what is compiled, reviewed
and signed has the field in its types, and members have nothing to choose. So shares that come from
elsewhere, or leave the program, are of FM128. Imports neither libspu nor JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mplang_core import MPType, Program
from mplang_core.ext import AnyType, Device, Graph, Operation, Value
from mplang_spu.config import AUTO, FRACTION_BITS, NARROW
from mplang_spu.field_reasons import reasons_against
from mplang_spu.share_type import ShareType, Sharing, share_of, shares_in

Retype = Callable[[ShareType], ShareType]


def settle(program: Program, devices: Sequence[Device]) -> Program:
    """Return a program in the field that is enough, where devices leave it open.

    Args:
        program: as it was traced; its shares on such a device are of FM128.
        devices: the SPUs that it was traced with.

    Returns:
        The program with these shares in FM64, if that is certain to be right; else as it is.
    """
    fixed = {Sharing.of_device(each.config) for each in devices if each.config.field != AUTO}
    chosen = {Sharing.of_device(each.config) for each in devices} - fixed
    for like in shares_in(program.graph) if chosen else ():
        if like in chosen and not reasons_against(program, like):
            program = in_field(program, like, NARROW)
    return program


def in_field(program: Program, like: Sharing, field: str) -> Program:
    """Return a program with its shares of one kind in another field.

    Args:
        program: it is not changed.
        like: the shares that are rewritten.
        field: their new field, with its default fraction bits.
    """
    fxp = FRACTION_BITS[field]

    def retype(kind: ShareType) -> ShareType:
        return replace(kind, field=field, fxp=fxp) if Sharing.of(kind) == like else kind

    return Program(program.name, program.mask, _graph(program.graph, retype))


def _graph(graph: Graph, retype: Retype) -> Graph:
    env = {value: Value(_type(value.type, retype)) for value in graph.inputs}
    ops = []
    for op in graph.ops:
        inputs = tuple(env[value] for value in op.inputs)
        env.update((value, Value(_type(value.type, retype))) for value in op.outputs)
        regions = {name: _graph(region, retype) for name, region in op.regions.items()}
        outputs = tuple(env[value] for value in op.outputs)
        attrs = _attrs(op, retype)
        ops.append(replace(op, inputs=inputs, outputs=outputs, attrs=attrs, regions=regions))
    return Graph([env[v] for v in graph.inputs], ops, [env[v] for v in graph.outputs])


def _attrs(op: Operation, retype: Retype) -> Mapping[str, object]:
    """Return the attributes of an op in the new field, which those of this package have."""
    attrs = {name: _attr(value, retype) for name, value in op.attrs.items()}
    shares = list(filter(None, (share_of(value.type) for value in (*op.inputs, *op.outputs))))
    if op.opcode == "spu.run_jax" and shares:
        new = retype(shares[0])
        config = {**op.attrs["config"], "field": new.field, "fxp_fraction_bits": new.fxp}
        attrs["config"] = MappingProxyType(config)
    return attrs


def _attr(value: object, retype: Retype) -> object:
    return retype(value) if isinstance(value, ShareType) else value


def _type(kind: AnyType, retype: Retype) -> AnyType:
    share = share_of(kind)
    if share is None:
        return kind
    return replace(kind, base=retype(share)) if isinstance(kind, MPType) else retype(share)
