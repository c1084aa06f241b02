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

K = TypeVar("K", bound=Kernel)


def kernel(*opcodes: str, role: Role = "worker") -> Callable[[K], K]:
    """Register a function as the kernel of ops, for all interpreters of a role.

    The function takes a :class:`~mplang_core.ext.KernelContext`, the operands by position and
    the attributes by keyword. It returns the result, or a tuple unless the op has exactly one.

    Args:
        *opcodes: the opcodes.
        role: ``"worker"`` for a party, ``"host"`` for the coordinator.

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
            _TABLES[role].add(opcode, fn, provider=provider, override=provider == "__main__")
        return fn

    return bind
