"""Hook specifications of plugins. Hooks return data and never run during a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

from mplang_core.device import DeviceKind, JointRun, Transfer
from mplang_core.ir import OpDef
from mplang_core.runtime import Codec, Kernel, Role
from mplang_core.simp.backend import BackendSpec
from mplang_core.simp.passes import Pass
from mplang_core.types import Attribute, BaseType

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import Feop

PROJECT = "mplang"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator: marks a function of a plugin's module as the implementation of a hook, by name."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect: ops and types with a common prefix.

    Attributes:
        name: the prefix of their names.
        ops: op definitions that ``@simple_op`` did not declare.
        types: base types.
        codecs: codecs by type name. Values of a type without a codec cannot be sent.
        attributes: attribute values of the plugin's own kinds.
    """

    name: str
    ops: Sequence[OpDef] = ()
    types: Sequence[type[BaseType]] = ()
    codecs: Mapping[str, Codec] = field(default_factory=dict)
    attributes: Sequence[type[Attribute]] = ()


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """Kernel with its ops and its role.

    Attributes:
        opcodes: the opcodes.
        kernel: ``kernel(ctx, *operands, **attributes)``; see :func:`mplang_core.kernel`.
        role: ``"worker"`` or ``"host"``.
        native: the native service that the kernel calls at a worker; empty for none.
    """

    opcodes: Sequence[str]
    kernel: Kernel
    role: Role = "worker"
    native: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check of ``mplang doctor``.

    Attributes:
        name: the subject of the check.
        ok: whether the check passed.
        detail: the finding; for a failed check also the remedy.
    """

    name: str
    ok: bool
    detail: str = ""


class Hooks(Protocol):
    """Hooks of a plugin: functions of its module, which it marks by :data:`hookimpl`."""

    @hookspec
    def mplang_feops(self) -> Sequence[Feop]:
        """Return the plugin's feops.

        Example::

            @simple_op("hello.greet")
            def greet(x: TensorType) -> TensorType:
                return x

            @hookimpl
            def mplang_feops():
                return [greet]
        """

    @hookspec
    def mplang_dialects(self) -> Sequence[Dialect]:
        """Return the plugin's op definitions and types.

        Example::

            @hookimpl
            def mplang_dialects():
                return [Dialect("hello", types=[Greeting], codecs={"hello.greeting": CODEC})]
        """

    @hookspec
    def mplang_kernels(self) -> Sequence[KernelSpec]:
        """Return the kernels of the plugin's ops.

        Example::

            def greet(ctx, x):
                return x

            @hookimpl
            def mplang_kernels():
                return [KernelSpec(["hello.greet"], greet)]
        """

    @hookspec
    def mplang_devices(self) -> Sequence[DeviceKind]:
        """Return the plugin's device kinds with their transfers.

        Example::

            @hookimpl
            def mplang_devices():
                ways = [
                    Transfer(Form.PLAIN, "VAULT", lock, "auto"),
                    Transfer("VAULT", Form.PLAIN, unlock, "reveal"),
                ]
                return [DeviceKind("VAULT", Form.SHARE, members=(2, 2), transfers=ways)]
        """

    @hookspec
    def mplang_transfers(self) -> Sequence[Transfer]:
        """Return transfers between device kinds that are not the plugin's own.

        Example::

            @hookimpl
            def mplang_transfers():
                return [Transfer("SPU", "VAULT", reshare, "auto")]
        """

    @hookspec
    def mplang_joint_runs(self) -> Sequence[JointRun]:
        """Return ways to run functions of values that stay with their parties.

        Example::

            @hookimpl
            def mplang_joint_runs():
                return [JointRun("hello.queries", takes_tables, run_query)]
        """

    @hookspec
    def mplang_backends(self) -> Sequence[BackendSpec]:
        """Return the plugin's backends.

        Example::

            @hookimpl
            def mplang_backends():
                return [BackendSpec("simulator", Simulator, "All parties in this process.")]
        """

    @hookspec
    def mplang_passes(self) -> Sequence[Pass]:
        """Return the plugin's passes, which apply to programs that the host submits as a whole.

        Each pass has an entry point of its name in the group ``mplang.passes``. Passes apply in the
        order of their names; the verifier checks the result of each.

        Example::

            def fold_constants(program):
                return program

            @hookimpl
            def mplang_passes():
                return [fold_constants]
        """

    @hookspec
    def mplang_settings(self) -> Mapping[str, str]:
        """Return the settings of this process that must be equal at all workers, by name.

        They are compared before a program runs; an example is an environment variable. Attributes
        of programs and versions of packages need no setting: they are compared already.

        Example::

            @hookimpl
            def mplang_settings():
                return {"HELLO_TONE": os.environ.get("HELLO_TONE", "warm")}
        """

    @hookspec
    def mplang_configure(self, section: Mapping[str, Any]) -> None:
        """Take the plugin's section of a worker's configuration.

        It is called once in each worker, before a program runs, and only there; what it raises
        keeps the worker from starting. :class:`mplang_core.ext.StrictModel` checks fields.

        Args:
            section: its fields; empty if the configuration has none.

        Example::

            @hookimpl
            def mplang_configure(section):
                kernels.config = Config(**section)
        """

    @hookspec
    def mplang_preload(self) -> Sequence[str]:
        """Return names of modules that the plugin's kernels import when they first run.

        A worker imports them once, before it forks the process of a session; so they must start no
        thread that a kernel needs, and no client of a device.

        Example::

            @hookimpl
            def mplang_preload():
                return ["duckdb", "pyarrow"]
        """

    @hookspec
    def mplang_doctor(self, config: str | None) -> Sequence[Check]:
        """Return checks of the plugin's environment.

        Only ``mplang doctor`` calls it, so it may import. Versions of its dependencies are
        checked already.

        Args:
            config: path of a worker's configuration that is to be checked, too; who does not
                need it leaves out the parameter.

        Example::

            @hookimpl
            def mplang_doctor():
                import engine

                has_channels = hasattr(engine, "channels")
                return [Check("engine has channels", has_channels, engine.__version__)]
        """
