"""Device kind ``HE``: a party that has the key, and one that computes on what it cannot read."""

from __future__ import annotations

from typing import Any, cast

from mplang_core import Form, Mask, MPObject, pshfl_s
from mplang_core.ext import Device, DeviceKind, TraceError, Transfer, at, run_program, the_holder
from mplang_he.circuit import roomy_parameters
from mplang_he.config import HeConfig, resolve_config
from mplang_he.keys import keys_of, private_key
from mplang_he.operands import (
    check_rows,
    encrypted,
    is_at_evaluator,
    range_of,
    scheme_of,
    tensor_of,
)
from mplang_he.ops import ops_of
from mplang_he.types import HeCiphertextType


def send_in(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Encrypt a tensor at a party that has it, with room for any function of some products.

    Args:
        value: a tensor with an axis of rows.
        src: unused.
        dst: of kind HE.

    Returns:
        Its ciphertexts, at the evaluator.

    Raises:
        TraceError: it is not such a tensor, or nobody said how large numbers are.
    """
    config = cast("HeConfig", dst.config)
    if config.limit is None:
        raise TraceError(
            f"{at()}how {value!s} is encrypted follows from the function that it is for: call "
            f"mp.device({dst.name!r})(function)(x) with what is at its party, and it is encrypted "
            f"there; or say in the configuration of {dst.name} by limit: how large the numbers of "
            "all results are, and by levels: how many products there are one after the other",
            code="T012",
        )
    kind = tensor_of(value, dst)
    check_rows(value, dst)
    ends = range_of(value, kind, dst)
    try:
        parameters = roomy_parameters(scheme_of([kind]), config.levels, config.limit)
    except ValueError as error:
        raise TraceError(f"{at()}{dst} cannot encrypt {value!s}: {error}", code="T012") from None
    owner = config.evaluator if is_at_evaluator(value, dst) else the_holder(value)
    return encrypted(value, owner, keys_of(value.ctx, dst, parameters), ends)


def disclose(value: MPObject, src: Device, dst: Device | None) -> MPObject:
    """Send ciphertexts to the key's holder, who decrypts, and send the numbers to the readers."""
    kind = value.base_type
    assert isinstance(kind, HeCiphertextType)
    config = cast("HeConfig", src.config)
    key = private_key(value.ctx, src, kind.parameters)
    sealed = pshfl_s(value, config.holder, [config.evaluator])
    decrypt = ops_of(kind.parameters).decrypt
    opened: Any = run_program(decrypt(sealed, key), Mask.of(config.holder))
    readers = value.ctx.mask if dst is None else dst.mask
    if readers == Mask.of(config.holder):
        return cast("MPObject", opened)
    return pshfl_s(opened, readers, [config.holder] * len(readers))


HE = DeviceKind(
    "HE",
    Form.CIPHERTEXT,
    config=HeConfig,
    members=(2, 2),
    resolve_config=resolve_config,
    dialects=("bfv", "ckks"),
    transfers=[
        Transfer(Form.PLAIN, "HE", send_in, "auto"),
        Transfer("HE", Form.PLAIN, disclose, "reveal"),
    ],
    doc="A party that has the key, and one that computes on ciphertexts without it.",
)
