"""Kernel tables by opcode and role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from mplang_core.namespace import Namespace

Role: TypeAlias = Literal["host", "worker"]

Kernel: TypeAlias = Callable[..., Any]
"""``kernel(ctx, *operands, **attributes)`` returns the result, or a tuple of results if the op
does not have exactly one."""

KernelTable: TypeAlias = Namespace[Kernel]
"""Kernels by opcode."""

host_kernels: KernelTable = Namespace("host kernel")
"""Kernels of hosts."""

worker_kernels: KernelTable = Namespace("worker kernel")
"""Kernels of workers."""

_TABLES = {"host": host_kernels, "worker": worker_kernels}

native_ops: Namespace[str] = Namespace("native op")
"""Native services that the kernels of parties declare, by opcode."""

K = TypeVar("K", bound=Kernel)


def add_kernel(
    opcode: str,
    fn: Kernel,
    *,
    provider: str,
    role: Role = "worker",
    native: str = "",
    override: bool = False,
) -> None:
    """Add the kernel of an op to the table of its role.

    Args:
        opcode: the op.
        fn: the kernel.
        provider: the distribution that it comes from.
        role: of the interpreters that run it.
        native: the native service that it needs; empty for none.
        override: whether the kernel of another provider may be replaced.

    Raises:
        PluginConflictError: the op has another kernel for that role.
        ValueError: a kernel of hosts needs a native service.
    """
    if native and role == "host":
        raise ValueError(
            f"the kernel of {opcode} declares native={native!r} and role='host'; native services "
            "are of parties, whose kernels have the role 'worker'"
        )
    _TABLES[role].add(opcode, fn, provider=provider, override=override)
    if native:
        native_ops.add(opcode, native, provider=provider, override=True)
    elif role == "worker":
        native_ops.remove(opcode)


def native_of(opcode: str) -> str | None:
    """Return the native service that the kernel of an op needs, ``None`` for none.

    Raises:
        PluginLoadError: the provider of the kernel did not load.
    """
    worker_kernels.get(opcode)  # loads it
    return native_ops.peek(opcode)


def kernel(*opcodes: str, role: Role = "worker", native: str = "") -> Callable[[K], K]:
    """Register a function as the kernel of ops, for all interpreters of a role.

    The function takes a :class:`~mplang_core.ext.KernelContext`, the operands by position and
    the attributes by keyword. It returns the result, or a tuple unless the op has exactly one.

    Args:
        *opcodes: the opcodes.
        role: ``"worker"`` for a party, ``"host"`` for the coordinator.
        native: the native service that it calls at a worker by
            :func:`mplang_core.ext.native_calls`, since its library reads what peers send; empty
            for none.

    Returns:
        A decorator that returns the same function.

    Raises:
        PluginConflictError: an op has a kernel of another provider for that role.

    Example:
        >>> @kernel("demo.scale")
        ... def scale(ctx, x, *, by):
        ...     return x * by
    """

    def bind(fn: K) -> K:
        provider = fn.__module__.partition(".")[0]
        for opcode in opcodes:
            mine = provider == "__main__"
            add_kernel(opcode, fn, provider=provider, role=role, native=native, override=mine)
        return fn

    return bind
