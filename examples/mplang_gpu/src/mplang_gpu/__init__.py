"""The device kind ``GPU``: the accelerator of one party, which holds values in plain.

A kind says what its devices are. Its values are plain and it has one member, so it runs what every
frontend makes for one party, and has the transfers of all that is plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from mplang_core import Form
from mplang_core.ext import Check, DeviceKind, hookimpl

GPU = DeviceKind("GPU", Form.PLAIN, doc="The accelerator of one party, in plain.")


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Provide the device kind."""
    return [GPU]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Tell what JAX runs on here, which is what a ``GPU`` of this machine runs on."""
    if find_spec("jax") is None:
        return [Check("JAX for functions of arrays", True, "not installed")]
    import jax

    platform = jax.default_backend()
    is_accelerator = "an accelerator" if platform != "cpu" else "the processor, in place of a GPU"
    return [Check("platform of JAX", True, f"{platform}: {is_accelerator}")]
