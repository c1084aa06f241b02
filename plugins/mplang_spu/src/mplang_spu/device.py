"""Device kind ``SPU``, and its transfers from plain and to plain."""

from __future__ import annotations

from typing import Any, cast

from mplang_core import Form, Mask, MPObject, TensorType, pconv, pshfl_s
from mplang_core.ext import (
    Device,
    DeviceKind,
    InsecureWarning,
    Lowering,
    TraceError,
    Transfer,
    at,
    run_program,
    the_holder,
    warn,
)
from mplang_spu.config import SpuConfig, resolve_config
from mplang_spu.field_choice import settle
from mplang_spu.ops import lower, make_shares, reconstruct
from mplang_spu.share_type import ShareType

_warned: list[Device] = []  # devices, each of which is warned of once


def share_out(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Share a tensor at one of its holders, and send each member its share.

    Args:
        value: a tensor at parties that are known when it is traced.
        src: unused.
        dst: the SPU.

    Returns:
        The shares, at the members.

    Raises:
        TraceError: it is not a tensor, or its holders are known only at run time.
    """
    if not isinstance(value.base_type, TensorType):
        raise TraceError(
            f"{at()}an SPU takes tensors, got {value!s}. Filter and aggregate a table at its "
            "party, where mp.device(...)(mplang_tables.to_tensor)(t, rows=...) makes its numbers a "
            "tensor",
            code="T013",
        )
    if value.pmask is None:
        raise TraceError(
            f"{at()}the holder of {value!s} is known only at run time; run its pcall at parties "
            "that are named",
            code="T008",
        )
    holder = the_holder(value)
    _warn_of_default(dst)
    try:
        share = ShareType.of(value.base_type, cast(SpuConfig, dst.config))
    except ValueError as error:
        raise TraceError(f"{at()}{error}", code="T008") from error
    program = make_shares(value, share=share)
    pieces = run_program(program, Mask.of(holder))
    moved = [
        piece if member == holder else pshfl_s(piece, member, [holder])
        for piece, member in zip(pieces, dst.mask, strict=True)
    ]
    return pconv(moved)


def _warn_of_default(spu: Device) -> None:
    """Say while it is compiled that workers do not take a protocol that nobody asked for."""
    if not spu.config.protocol_is_default or spu.config.protocol != "SEMI2K" or spu in _warned:
        return
    text = (
        f"{spu} of {len(spu.mask)} parties has no secure protocol: SEMI2K trusts its first party, "
        "and workers refuse it. Share among two (CHEETAH) or three (ABY3) of the parties: in the "
        "cluster's devices, give an SPU these members; the others seal to it. If SEMI2K is meant, "
        "for debugging, write it in the device's config: protocol: SEMI2K"
    )
    warn(text, InsecureWarning)
    _warned.append(spu)


def disclose(value: MPObject, src: Device, dst: Device | None) -> MPObject:
    """Send all shares to the readers, and reconstruct the tensor there.

    Args:
        value: shares at the members.
        src: the SPU.
        dst: the device of the readers; all parties if ``None``.

    Returns:
        The tensor, at the readers.
    """
    readers = value.ctx.mask if dst is None else dst.mask
    pieces = [pshfl_s(value, readers, [member] * len(readers)) for member in src.mask]
    result: Any = run_program(reconstruct(*pieces), readers)
    return cast(MPObject, result)


SPU = DeviceKind(
    "SPU",
    Form.SHARE,
    config=SpuConfig,
    members=(2, None),
    resolve_config=resolve_config,
    dialects=("spu", "pphlo"),
    lowering=Lowering(("stablehlo",), lower),
    transfers=[
        Transfer(Form.PLAIN, "SPU", share_out, "auto"),
        Transfer("SPU", Form.PLAIN, disclose, "reveal"),
    ],
    settle=settle,
    doc="Secure multi-party computation on secret shares.",
)
