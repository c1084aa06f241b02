"""What mplang is told of this package. It is loaded for a look-up, so it imports no engine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mplang_cli import introspect
from mplang_core.ext import (
    BackendSpec,
    Check,
    DeviceKind,
    Dialect,
    Feop,
    KernelSpec,
    Pass,
    hookimpl,
)

from mplang_hello import backend, device, kernels, ops, types
from mplang_hello.broadcast import BROADCAST, send_or_receive
from mplang_hello.broadcast_once import broadcast_once
from mplang_hello.rate import Rate, convert
from mplang_hello.spread import of_enough, spread


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide the feops."""
    return [ops.summarize, ops.standardize, ops.split, ops.join, ops.pick, convert, spread]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide an op among parties, an attribute, and types; without a codec values stay."""
    return [
        Dialect(
            "hello",
            ops=[BROADCAST],
            types=[types.SummaryType, types.HalfType],
            attributes=[Rate],
            codecs={
                types.SummaryType.name: types.SUMMARY_CODEC,
                types.HalfType.name: types.HALF_CODEC,
            },
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what the ops do at a party."""
    return [
        KernelSpec(["hello.summarize"], kernels.summarize),
        KernelSpec(["hello.split"], kernels.split),
        KernelSpec(["hello.join"], kernels.join),
        KernelSpec(["hello.pick"], kernels.pick),
        KernelSpec(["hello.convert"], kernels.convert),
        KernelSpec(["hello.spread"], of_enough),
        KernelSpec(["hello.broadcast"], send_or_receive),
    ]


@hookimpl
def mplang_passes() -> Sequence[Pass]:
    """Provide a pass; an entry point has its name."""
    return [broadcast_once]


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Provide the device kind ``VAULT``; its module has added the ways into it and out of it."""
    return [device.VAULT]


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Provide the backend ``inline``, also known as ``mp.Inline``."""
    return [BackendSpec("inline", backend.Inline, "All parties here, and a list of messages.")]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Look whether there is entropy for pads, and where standardize can run."""
    pads = {os.urandom(16) for _ in range(4)}
    kinds = introspect.describe("hello.standardize")["devices"]
    return [
        Check("one-time pads differ", len(pads) == 4, "from the operating system"),
        Check("standardize runs somewhere", bool(kinds), ", ".join(kinds) or "no device takes it"),
    ]
