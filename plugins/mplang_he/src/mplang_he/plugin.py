"""Plugin hooks of `mplang_he` for the dialect ``he``. Imports neither SEAL nor JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mplang_core.ext import (
    Check,
    DeviceKind,
    Dialect,
    Feop,
    JointRun,
    KernelContext,
    KernelSpec,
    NativeParty,
    NativeService,
    NativeSpec,
    hookimpl,
)
from mplang_he import device, functions, ops, types


def late(name: str) -> Callable[..., Any]:
    """Return a kernel whose module is imported when it first runs."""

    def run(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
        return getattr(import_module("mplang_he.kernels"), name)(ctx, *operands, **attrs)

    return run


def _serve(party: NativeParty) -> NativeService:
    from mplang_he.service import HeService

    return HeService()


SERVICE = NativeSpec(_serve, links=False, plain=True)
"""It has no links, and gets plain operands, and at the holder the key."""


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops that make keys."""
    return [ops.keygen, ops.rotation_keys]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``he``; a private key has no codec, so it cannot leave its party."""
    public = types.HePublicKeyType, types.HeRelinKeyType, types.HeRotationKeyType
    return [
        Dialect(
            "he",
            types=[types.HePrivateKeyType, *public, types.HeCiphertextType],
            codecs={
                **{kind.name: types.KEY_CODEC for kind in public},
                types.HeCiphertextType.name: types.CIPHERTEXT_CODEC,
            },
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels that make keys, whose library runs in a process of its own."""
    names = ("keygen", "rotation_keys")
    return [KernelSpec([f"he.{name}"], late(name), native="he") for name in names]


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Return the device kind ``HE``."""
    return [device.HE]


@hookimpl
def mplang_joint_runs() -> Sequence[JointRun]:
    """Return what encrypts the operands of a function, and runs it at the evaluator."""
    return [JointRun("he.functions", functions.takes, functions.run, ["spare"])]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run; SEAL is loaded after the fork."""
    return ["mplang_he.kernels", "mplang_he.admission"]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that SEAL encrypts, multiplies and decrypts."""
    from importlib.metadata import version

    from mplang_he.tried import works

    return [Check("BFV by SEAL works", works(), f"tenseal {version('tenseal')}")]
