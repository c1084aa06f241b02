"""What ops do, by role. An op knows nothing of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from mplang_core.namespace import Namespace

Role: TypeAlias = Literal["host", "worker"]

Kernel: TypeAlias = Callable[..., Any]
"""``kernel(ctx, *operands, **attributes)`` gives the result, or a tuple where the op has
another number of results than one."""

KernelTable: TypeAlias = Namespace[Kernel]
"""Kernels by opcode. An interpreter's own table falls back to that of its role."""

host_kernels: KernelTable = Namespace("host kernel")
"""Kernels of the coordinator."""

worker_kernels: KernelTable = Namespace("worker kernel")
"""Kernels of a party."""

_TABLES = {"host": host_kernels, "worker": worker_kernels}

K = TypeVar("K", bound=Kernel)


def kernel(*opcodes: str, role: Role = "worker") -> Callable[[K], K]:
    """Bind a function to ops, for all interpreters of a role.

    The function takes a :class:`~mplang_core.runtime.KernelContext`, the operands by
    position and the attributes by keyword.

    Args:
        *opcodes: the ops that it is the kernel of.
        role: who runs it.

    Raises:
        PluginConflictError: the op has another kernel for that role.

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
