"""Plugin hooks of `mplang_tables`. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core import BaseType, TableType
from mplang_core.ext import Codec, Dialect, Encoded, Feop, KernelSpec, WireError, hookimpl
from mplang_tables import categories, integers, kernels, nulls, ops, tabular_kernels
from mplang_tables.casts import cast
from mplang_tables.scan import loaded
from mplang_tables.table_view import show_in_ipython

show_in_ipython()


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops between tables, tensors and literals."""
    return [
        ops.literal,
        ops.to_tensor,
        ops.to_padded,
        ops.to_masked,
        ops.from_tensor,
        ops.from_padded,
        cast,
        categories.encode,
        categories.decode,
        categories.one_hot,
        nulls.fill_nulls,
        integers.to_integers,
        integers.from_integers,
    ]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the codec of tables; their type is the core's."""
    return [Dialect("table", codecs={"table": Codec(_encode, _decode, _normalize)})]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels of the dialect."""
    return [
        KernelSpec([f"table.{kernel.__name__}"], kernel)
        for kernel in (
            kernels.literal,
            kernels.to_tensor,
            kernels.to_padded,
            kernels.to_masked,
            kernels.from_tensor,
            kernels.from_padded,
            *tabular_kernels.KERNELS,
        )
    ]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the codec imports when it first runs."""
    return ["mplang_tables.arrow"]


def _encode(value: Any) -> Encoded:
    from mplang_tables import arrow

    try:
        rows, buffers = arrow.write(loaded(value))
    except (TypeError, ValueError) as error:
        raise WireError(f"cannot write a table: {error}", code="I004") from error
    return {"rows": rows}, [memoryview(buffer) for buffer in buffers]


def _decode(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Any:
    from mplang_tables import arrow

    if header.keys() != {"rows"} or not isinstance(kind, TableType):
        raise ValueError("a table comes with its number of rows")
    return arrow.read(kind, header["rows"], buffers)


def _normalize(value: Any) -> Any:
    from mplang_tables import arrow

    return arrow.normalize(value)
