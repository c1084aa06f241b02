"""Errors of kernels that cannot read a data set."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mplang_core.ext import AdmissionError, KernelError
from mplang_data.description import (
    NoDataSetError,
    NotOfferedError,
    SourceError,
    SourceUnreachableError,
)

log = logging.getLogger("mplang.data")


@contextmanager
def explaining(names: Sequence[str]) -> Iterator[None]:
    """Turn what is raised inside of ``with`` about data sets into errors of kernels.

    Args:
        names: the names of the data sets that are read.

    Raises:
        AdmissionError: there is none of that name that the coordinator may read, or it does not
            offer that.
        KernelError: its source is not there, or does not hold what its owner says.
    """
    which = f"data set{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
    try:
        yield
    except NotOfferedError as error:
        raise AdmissionError(f"{which}: {error}", code="A002") from error
    except NoDataSetError as error:
        raise AdmissionError(
            f"this party has no data set {str(error)!r} that you may read; its owner names it in "
            "the worker's `data`, and you among its `readers`",
            code="A002",
        ) from error
    except SourceUnreachableError as error:
        raise KernelError(
            f"{which} cannot be reached now: {error}; its owner's log says why", code="R011"
        ) from error
    except SourceError as error:  # its owner is told, whatever a coordinator is
        why = f"{error}: {error.detail}" if error.detail else str(error)
        log.error("%s does not match what is published: %s", which, why)
        raise KernelError(f"{which} is not what its owner published: {why}", code="R011") from error
