"""What a plugin's module may say. Each hook returns data; none runs while a program does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pluggy

from mplang_core.device import DeviceKind
from mplang_core.ir import OpDef
from mplang_core.runtime import Codec, Kernel, Role
from mplang_core.simp.backend import BackendSpec
from mplang_core.simp.passes import Pass
from mplang_core.types import BaseType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import Feop

PROJECT = "mplang"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin's module as the implementation of the hook of its name."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Ops and types under one prefix.

    Attributes:
        name: the prefix of their names.
        ops: definitions that were not declared by ``@simple_op``.
        types: base types.
        codecs: by type name, how values are written; a type without stays at its party.
    """

    name: str
    ops: Sequence[OpDef] = ()
    types: Sequence[type[BaseType]] = ()
    codecs: Mapping[str, Codec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel, and the ops and the role that it is for."""

    opcodes: Sequence[str]
    kernel: Kernel
    role: Role = "worker"


@dataclass(frozen=True, slots=True)
class Check:
    """What ``mplang doctor`` found out.

    Attributes:
        name: what was looked at.
        ok: whether it is as it should be.
        detail: what was found; and if it is not ok, what to do.
    """

    name: str
    ok: bool
    detail: str = ""


@hookspec
def mplang_feops() -> Sequence[Feop]:
    """Return the plugin's feops.

    Example::

        @simple_op("hello.greet")
        def greet(x: TensorType) -> TensorType:
            return x

        @hookimpl
        def mplang_feops():
            return [greet]
    """
    raise NotImplementedError


@hookspec
def mplang_dialects() -> Sequence[Dialect]:
    """Return the plugin's op definitions and types.

    Example::

        @hookimpl
        def mplang_dialects():
            return [Dialect("hello", types=[Greeting], codecs={"hello.greeting": CODEC})]
    """
    raise NotImplementedError


@hookspec
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return what the plugin's ops do.

    Example::

        def greet(ctx, x):
            return x

        @hookimpl
        def mplang_kernels():
            return [KernelSpec(["hello.greet"], greet)]
    """
    raise NotImplementedError


@hookspec
def mplang_devices() -> Sequence[DeviceKind]:
    """Return the plugin's kinds of devices, with the transfers between them and others.

    Example::

        @hookimpl
        def mplang_devices():
            way = Transfer("PPU", "TEE", encrypt)
            return [DeviceKind("TEE", Form.HANDLE, transfers=[way], doc="An attested enclave.")]
    """
    raise NotImplementedError


@hookspec
def mplang_backends() -> Sequence[BackendSpec]:
    """Return the plugin's ways to reach workers.

    Example::

        @hookimpl
        def mplang_backends():
            return [BackendSpec("simulator", Simulator, "All parties in this process.")]
    """
    raise NotImplementedError


@hookspec
def mplang_passes() -> Sequence[Pass]:
    """Return the plugin's passes; each is applied to programs that the parties run whole.

    An entry point of the group ``mplang.passes`` has the name of each. Passes are applied in the
    order of their names, and the verifier checks what each gives.

    Example::

        def fold_constants(program):
            return program

        @hookimpl
        def mplang_passes():
            return [fold_constants]
    """
    raise NotImplementedError


@hookspec
def mplang_settings() -> Mapping[str, str]:
    """Return what this process was told that has to be the same at all parties, by name.

    Workers are compared before a program runs: a setting of the environment, say. What stands
    in the program is the same everywhere anyway, and versions of packages are compared already.

    Example::

        @hookimpl
        def mplang_settings():
            return {"HELLO_TONE": os.environ.get("HELLO_TONE", "warm")}
    """
    raise NotImplementedError


@hookspec
def mplang_doctor() -> Sequence[Check]:
    """Look whether the plugin can work here; called by ``mplang doctor`` only, so it may import.

    That its dependencies are there in the versions that its package asks for is checked
    already.

    Example::

        @hookimpl
        def mplang_doctor():
            import engine

            return [Check("engine has channels", hasattr(engine, "channels"), engine.__version__)]
    """
    raise NotImplementedError
