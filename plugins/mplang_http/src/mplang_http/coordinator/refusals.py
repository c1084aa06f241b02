"""Refusals as a worker sends them: what of a program the rules of its owner refuse."""

from __future__ import annotations

from typing import Any

import msgspec

from mplang_core.ext import AdmissionError, Failure, MPLangError, Refusal, printable

MAX_REFUSALS = 100


def read_refusals(data: Any) -> tuple[Refusal, ...]:
    """Return the refusals of an error; none if they are malformed. Texts are escaped.

    Args:
        data: plain data of a worker; untrusted.
    """
    try:
        sent = msgspec.convert(data, list[dict[str, str | list[str]]])[:MAX_REFUSALS]
        return tuple(msgspec.convert(_escaped(each), Refusal) for each in sent)
    except (msgspec.ValidationError, RecursionError):
        return ()


def error_of(described: Any) -> MPLangError:
    """Return the error of a job, as its worker describes it.

    Args:
        described: plain data of a worker; untrusted.

    Raises:
        LookupError, TypeError, ValueError: it is malformed.
    """
    fields = dict(described)
    refusals = read_refusals(fields.pop("refusals", []))
    made = Failure(**fields).error()
    if isinstance(made, AdmissionError):
        made.refusals = refusals
    return made


def _escaped(fields: dict[str, str | list[str]]) -> dict[str, Any]:
    return {
        name: printable(value) if isinstance(value, str) else [printable(each) for each in value]
        for name, value in fields.items()
    }
