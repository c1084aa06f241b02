"""Device kind ``TEE``: plain in the enclave of one party, after its owners have attested it."""

from __future__ import annotations

from typing import Any, cast

from mplang_core import Form, Mask, MPObject, pconv, pshfl_s
from mplang_core.ext import Device, DeviceKind, TraceError, Transfer, at, run_program, the_holder
from mplang_tee import ops
from mplang_tee.config import TeeConfig, resolve_config
from mplang_tee.inside import INSIDE
from mplang_tee.sessions import session_of


def send_in(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Take a value into the enclave; its owner verifies that first, and seals the value for it.

    What the party of the enclave has itself, or all know, is taken as it is.

    Args:
        value: of any plain type.
        src: unused.
        dst: of kind TEE.

    Returns:
        The value, on the device.

    Raises:
        TraceError: it is not plain, or who has it is known only at run time.
    """
    config = cast("TeeConfig", dst.config)
    if value.base_type.form is not Form.PLAIN:
        raise TraceError(f"{at()}{dst} takes plain values of its party, got {value!s}", code="T008")
    if value.pmask is None:
        raise TraceError(
            f"{at()}the holder of {value!s} is known only at run time, so no party can verify the "
            "enclave for it: mp.put it at its party first",
            code="T008",
        )
    if dst.mask <= value.pmask:
        return cast("MPObject", run_program(ops.hold(value, provider=config.provider), dst.mask))
    session = session_of(value.ctx, dst, the_holder(value))
    slot = next(session.slots)
    owner = Mask.of(session.party)
    here = value if value.pmask == owner else pshfl_s(value, owner, [session.party])
    sealed = run_program(ops.seal(here, session.key, slot=slot), owner)
    there = pshfl_s(sealed, dst.mask, [session.party])
    opened: Any = run_program(ops.open(there, session.enclave_key, slot=slot), dst.mask)
    return cast("MPObject", opened)


def disclose(value: MPObject, src: Device, dst: Device | None) -> MPObject:
    """Give a value to its readers: sealed for each of them, but for the party of the enclave.

    Args:
        value: on the device.
        src: of kind TEE.
        dst: the readers; ``None`` for all parties.
    """
    readers = value.ctx.mask if dst is None else dst.mask
    opened = [_opened(value, src, rank) for rank in readers]
    return opened[0] if len(opened) == 1 else pconv(opened)


def _opened(value: MPObject, src: Device, rank: int) -> MPObject:
    """Return a value in plain at one reader."""
    reader = Mask.of(rank)
    if reader == src.mask:
        return cast("MPObject", run_program(ops.release(value), src.mask))
    session = session_of(value.ctx, src, rank)
    slot = next(session.slots)
    sealed = run_program(ops.reseal(value, session.enclave_key, slot=slot), src.mask)
    there = pshfl_s(sealed, reader, [src.mask.first])
    return cast("MPObject", run_program(ops.unseal(there, session.key, slot=slot), reader))


TEE = DeviceKind(
    "TEE",
    Form.HANDLE,
    config=TeeConfig,
    members=(1, 1),
    resolve_config=resolve_config,
    dialects=("tee",),
    lowering=INSIDE,
    transfers=[
        Transfer(Form.PLAIN, "TEE", send_in, "auto"),
        Transfer("TEE", Form.PLAIN, disclose, "reveal"),
    ],
    doc="The enclave of one party, plain inside after each owner has verified it.",
)
