"""Functions inside of an enclave: what parties run in plain, as one op on what is plain there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import mplang_core as mp
from mplang_core import BaseType, FeProgram, PFunction, TraceContext, TraceVar
from mplang_core.ext import FeMeta, Lowering
from mplang_tee.config import TeeConfig
from mplang_tee.types import TeeValueType


def lower(
    make: Callable[[Sequence[BaseType]], FeProgram], types: Sequence[BaseType], config: TeeConfig
) -> FeProgram:
    """Return a program of plain values as one that an enclave runs.

    Args:
        make: returns the program for the types of its operands.
        types: what they are on the device: inside of the enclave, or public.
        config: of the device.
    """
    program = make([_plain(kind) for kind in types])
    inner = program.pfunc
    ctx = mp.cur_ctx()
    body = TraceContext(ctx.cluster_spec, ctx, local=True)
    params = [body.parameter(kind) for kind in inner.ins_info]
    outs = body.emit(inner.fn_type, params, inner.attrs, inner.regions)
    body.graph.outputs = [cast(TraceVar, out).value for out in outs]
    takes = (*types, *inner.ins_info[len(types) :])  # its constants are public
    gives = tuple(TeeValueType(kind, config.provider) for kind in inner.outs_info)
    attrs, regions = {"provider": config.provider}, {"do": body.graph}
    return replace(program, pfunc=PFunction("tee.run", takes, gives, attrs, regions))


def _plain(kind: BaseType) -> BaseType:
    return kind.inner if isinstance(kind, TeeValueType) else kind


class _Inside(Lowering):
    """Of all dialects; :func:`mplang_tee.ops.check_inside` looks at the ops themselves."""

    __slots__ = ()

    def takes(self, meta: FeMeta) -> bool:
        """Return whether a party alone runs a feop, on plain values."""
        return Lowering.takes(self, meta) and meta.execution_model == "single_rank"


INSIDE = _Inside((), lower)
"""What runs functions of plain values inside."""
