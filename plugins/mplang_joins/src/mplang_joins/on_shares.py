"""What all joins run: salts at the parties that bring tables, and functions of arrays on an SPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mplang_spu import SpuConfig

import mplang_core as mp
from mplang_core import MPObject, fe_materialize
from mplang_core.ext import Device, TraceError, at, flatten, run_program, unflatten
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


def check_field(spu: Device) -> None:
    """Refuse an SPU whose field has no room for tokens.

    Raises:
        TraceError: it has not; shows the line.
    """
    if spu.config.field == "FM32":
        raise TraceError(f"{at()}{spu.name}: FM32 has no room for keys; take FM64 or FM128")


def oblivious(config: SpuConfig) -> SpuConfig:
    """Return the configuration that joins run by: with a sort whose messages tell nothing."""
    return config.with_oblivious_sort()
