"""Plugin hooks of `mplang_phe`. Imports no cryptographic library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mplang_core.ext import (
    Check,
    Dialect,
    Feop,
    KernelContext,
    KernelSpec,
    NativeParty,
    NativeService,
    NativeSpec,
    hookimpl,
)
from mplang_phe import ops, types

_OPS = (
    *("keygen", "encrypt", "decrypt", "add", "sub", "multiply_plain", "matmul_plain", "sum"),
    "segment_sum",
)


def _late(name: str) -> Callable[..., Any]:
    """Return a kernel whose module is imported when it first runs."""

    def run(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
        return getattr(import_module("mplang_phe.kernels"), name)(ctx, *operands, **attrs)

    return run


def _serve(party: NativeParty) -> NativeService:
    from mplang_phe.service import PheService

    return PheService()


SERVICE = NativeSpec(_serve, links=False, plain=True)
"""It has no links, and gets plain operands, and at the holder the key."""


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops."""
    return [getattr(ops, name) for name in _OPS]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``phe``; a private key has no codec, so it cannot leave its party."""
    return [
        Dialect(
            "phe",
            types=[types.PhePrivateKeyType, types.PhePublicKeyType, types.PheCiphertextType],
            codecs={
                types.PhePublicKeyType.name: types.PUBLIC_KEY_CODEC,
                types.PheCiphertextType.name: types.CIPHERTEXT_CODEC,
            },
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels, whose library runs in a process of its own."""
    return [KernelSpec([f"phe.{name}"], _late(name), native="phe") for name in _OPS]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_phe.kernels"]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that heu encrypts, adds and decrypts."""
    from importlib.metadata import version

    from mplang_phe.heu import Paillier, make_keys

    secret, modulus, base = make_keys(2048)
    key = Paillier(modulus, base, secret)
    (three,) = key.encrypted([3])
    right = key.decrypted([key.total([three, three])]) == [6]
    return [Check("Paillier by heu works", right, f"sf-heu {version('sf-heu')}")]
