"""Refusals as a worker sends them: what of a program the rules of its owner refuse."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from mplang_core.ext import AdmissionError, Failure, MPLangError, Refusal, printable

MAX_REFUSALS = 100


def read_refusals(party: str, data: Any) -> tuple[Refusal, ...]:
    """Return the refusals of an error, but for those that are malformed. Texts are escaped.

    Args:
        party: the party whose worker sent them; it speaks for no other.
        data: plain data of that worker; untrusted.
    """
    refusals = []
    for each in data[:MAX_REFUSALS] if isinstance(data, list) else ():
        with contextlib.suppress(msgspec.ValidationError, RecursionError):
            fields = msgspec.convert(each, dict[str, str | list[str]])
            refusals.append(msgspec.convert({**_escaped(fields), "party": party}, Refusal))
    return tuple(refusals)


def error_of(party: str, described: Any) -> MPLangError:
    """Return the error of a job, as its worker describes it.

    Args:
        party: the worker's party.
        described: plain data of a worker; untrusted.

    Raises:
        LookupError, TypeError, ValueError: it is malformed.
    """
    fields = dict(described)
    refusals = read_refusals(party, fields.pop("refusals", []))
    made = Failure(**fields).error()
    if isinstance(made, AdmissionError):
        made.refusals = refusals
    return made


def _escaped(fields: dict[str, str | list[str]]) -> dict[str, Any]:
    return {
        name: printable(value) if isinstance(value, str) else [printable(each) for each in value]
        for name, value in fields.items()
    }
