"""Kernels of the dialect ``data``."""

from __future__ import annotations

import logging
from typing import Any

from mplang_tables.ext import Scan

from mplang_core import BaseType
from mplang_core.ext import AdmissionError, KernelContext, KernelError, RunError
from mplang_data.description import (
    NoDataSetError,
    NotOfferedError,
    Ranges,
    SourceError,
    SourceUnreachableError,
)

log = logging.getLogger("mplang.data")


def read(ctx: KernelContext, *, name: str, type: BaseType, ranges: Ranges) -> Any:
    """Read a data set of this party.

    Args:
        ctx: of the op.
        name: its name.
        type: what is read of it.
        ranges: ranges that the program counts on.

    Returns:
        A ``pyarrow.Table``, a :class:`mplang_tables.scan.Scan` or an array.

    Raises:
        AdmissionError: there is none of that name that the coordinator may read, or it does not
            offer that, or publishes no such range.
        KernelError: its source does not hold what its owner says.
    """
    open_data_set = getattr(ctx.interpreter.data, "open", None)  # none without data sets
    if not _is_always_read(ctx):
        open_data_set = getattr(ctx.interpreter.data, "open_perhaps", open_data_set)
    try:
        if open_data_set is None:
            raise NoDataSetError(name)
        with open_data_set(name, type) as opened:
            refused = opened.description.range_refusal(type, ranges)
            if refused:
                raise NotOfferedError(refused)
            found = opened.read(type)
            if isinstance(found, Scan):
                found.name = f"data set {name!r}"
            return found
    except NotOfferedError as error:
        raise AdmissionError(f"data set {name!r}: {error}") from error
    except NoDataSetError as error:
        raise AdmissionError(
            f"this party has no data set {name!r} that you may read; its owner names it in the "
            "worker's `data`, and you among its `readers`"
        ) from error
    except SourceUnreachableError as error:
        raise KernelError(
            f"data set {name!r} cannot be reached now: {error}; its owner's log says why"
        ) from error
    except SourceError as error:  # its owner is told, whatever a coordinator is
        why = f"{error}: {error.detail}" if error.detail else str(error)
        log.error("data set %s is not what is published: %s", name, why)
        raise KernelError(f"data set {name!r} is not what its owner published: {why}") from error


def _is_always_read(ctx: KernelContext) -> bool:
    """Return whether no private data decides that an op runs: it is in a ``pcall_static`` alone."""
    try:
        return bool(ctx.parties) and ctx.key.removeprefix(ctx.run).count("/") == 2
    except RunError:
        return False
