"""Plugin hooks of `mplang_spu`. Imports neither libspu nor JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_core.ext import (
    Check,
    DeviceKind,
    Dialect,
    Feop,
    KernelSpec,
    NativeParty,
    NativeService,
    NativeSpec,
    hookimpl,
)
from mplang_spu import config, device, kernels, ops, shares
from mplang_spu.share_type import ShareType


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the feops for sharing, reconstruction and compilation."""
    return [ops.make_shares, ops.reconstruct, ops.run_jax]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``spu``: its ops, its type and its codec."""
    return [
        Dialect(
            "spu",
            ops=[ops.RECONSTRUCT, ops.RUN_JAX],
            types=[ShareType],
            codecs={"spu.share": shares.CODEC},
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels of the dialect."""
    return [
        KernelSpec(["spu.make_shares"], kernels.make_shares),
        KernelSpec(["spu.reconstruct"], kernels.reconstruct),
        KernelSpec(["spu.run_jax"], kernels.run_jax, native="spu"),
    ]


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Return the device kind ``SPU``."""
    return [device.SPU]


@hookimpl
def mplang_settings() -> Mapping[str, str]:
    """Return the link setting of the environment, which must be equal at all members."""
    enabled = config.from_env()
    return {config.ENV: "not set" if enabled is None else str(int(enabled))}


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that this build of libspu supports channels."""
    from mplang_spu.libspu import libspu, version

    supported = hasattr(libspu.link, "create_with_channels")
    advice = "" if supported else "; pip install 'spu>=0.10.0.dev20251211'"
    return [Check("libspu has channels", supported, f"spu {version}{advice}")]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_spu.engine", "mplang_spu.native", "mplang_spu.reference_check.check"]


def _serve(party: NativeParty) -> NativeService:
    from mplang_spu.native import SpuService

    return SpuService(party)


serve = NativeSpec(_serve, ports=True)
"""The native service of SPU: it gets shares and public operands; BRPC's links have ports."""
