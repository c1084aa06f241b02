"""What the core is told of this package. Imports neither SPU nor JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_core.device import DeviceKind
from mplang_core.feop import Feop
from mplang_core.plugins import Check, Dialect, KernelSpec, hookimpl
from mplang_spu import config, device, kernels, ops, shares


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide sharing, reconstruction, and the compiler."""
    return [ops.make_shares, ops.reconstruct, ops.run_jax]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide the ops and the type of shares."""
    return [
        Dialect(
            "spu",
            ops=[ops.RECONSTRUCT, ops.RUN_JAX],
            types=[ops.ShareType],
            codecs={"spu.share": shares.CODEC},
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what the ops do at a party."""
    return [
        KernelSpec(["spu.make_shares"], kernels.make_shares),
        KernelSpec(["spu.reconstruct"], kernels.reconstruct),
        KernelSpec(["spu.run_jax"], kernels.run_jax),
    ]


@hookimpl
def mplang_devices() -> Sequence[DeviceKind]:
    """Provide the device kind ``SPU``."""
    return [device.SPU]


@hookimpl
def mplang_settings() -> Mapping[str, str]:
    """Tell which links the environment wants: all members take the same."""
    said = config.from_env()
    return {config.ENV: "not set" if said is None else str(int(said))}


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Look at the build of libspu."""
    import spu

    there = hasattr(spu.libspu.link, "create_with_channels")
    advice = "" if there else "; pip install 'spu>=0.10.0.dev20251211'"
    return [Check("libspu has channels", there, f"spu {spu.__version__}{advice}")]
