"""Plugin hooks of `mplang_tee`. Imports no cryptographic library, and no verifier of quotes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from mplang_core.ext import (
    Check,
    DeviceKind,
    Dialect,
    Feop,
    KernelContext,
    KernelSpec,
    MPLangError,
    NativeParty,
    NativeService,
    NativeSpec,
    hookimpl,
)
from mplang_tee import device, ops, types


def late(name: str) -> Callable[..., Any]:
    """Return a kernel whose module is imported when it first runs."""

    def run(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
        return getattr(import_module("mplang_tee.kernels"), name)(ctx, *operands, **attrs)

    return run


def _serve(party: NativeParty) -> NativeService:
    from mplang_tee.service import TeeService

    return TeeService(party.insecure)


SERVICE = NativeSpec(_serve, links=False)
"""It verifies what comes from peers; it has no links, and no data of its party."""


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops of the ways in and out."""
    return [ops.seal, ops.open, ops.hold, ops.release, ops.reseal, ops.unseal]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``tee``; what is inside of an enclave has no codec."""
    return [
        Dialect(
            "tee",
            ops=[ops.ATTEST, ops.RUN],
            types=[
                types.TeeValueType,
                types.TeeSealedType,
                types.TeeSessionKeyType,
                types.TeeEnclaveKeyType,
                types.TeeQuoteType,
            ],
            codecs={
                types.TeeSealedType.name: types.SEALED_CODEC,
                types.TeeQuoteType.name: types.QUOTE_CODEC,
            },
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels; quotes of peers are read in a process of its own."""
    names = ("seal", "open", "hold", "release", "reseal", "unseal", "run")
    return [
        KernelSpec(["tee.attest"], late("attest"), native="tee"),
        *(KernelSpec([f"tee.{name}"], late(name)) for name in names),
    ]


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Return the device kind ``TEE``."""
    return [device.TEE]


@hookimpl
def mplang_configure(section: Mapping[str, Any]) -> None:
    """Take what this party takes for an enclave, or that its worker is one."""
    from mplang_tee import settings

    settings.configure(section)


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_tee.kernels", "mplang_tee.service"]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that the providers that are installed load."""
    from mplang_tee.provider import find_provider, provider_names

    def check(name: str) -> Check:
        try:
            return Check(f"{name} loads", True, find_provider(name).doc)
        except MPLangError as error:  # of one package; the others are there all the same
            return Check(f"{name} loads", False, str(error))

    return [check(name) for name in provider_names()]
