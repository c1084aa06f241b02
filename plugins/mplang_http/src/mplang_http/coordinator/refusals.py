"""Refusals as a worker sends them: what of a program the rules of its owner refuse."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace
from typing import Any, TypeVar

import msgspec

from mplang_core.ext import (
    AdmissionError,
    Advice,
    Failure,
    MPLangError,
    Refusal,
    Refusals,
    printable,
)

MAX_REFUSALS = 100
MAX_ADVICE = 100  # of a refusal
T = TypeVar("T", Advice, Refusal)


def read_refusals(party: str, data: Any) -> tuple[Refusal, ...]:
    """Return the refusals of an error, but for those that are malformed. Texts are escaped.

    Args:
        party: the party whose worker sent them; it speaks for no other.
        data: plain data of that worker; untrusted.
    """
    refusals = []
    for each in data[:MAX_REFUSALS] if isinstance(data, list) else ():
        with contextlib.suppress(msgspec.ValidationError, RecursionError):
            refusal = msgspec.convert(each, Refusal)
            changes = refusal.advice[:MAX_ADVICE]
            advice = tuple(_escaped(change, keep="change") for change in changes)
            refusals.append(replace(_escaped(refusal), party=party, advice=advice))
    return tuple(refusals)


def error_of(party: str, described: Any) -> MPLangError:
    """Return the error of a job, as its worker describes it.

    Args:
        party: the worker's party.
        described: plain data of a worker; untrusted.

    Raises:
        LookupError, TypeError, ValueError: it is malformed.
    """
    failure = dict(described)
    refusals = read_refusals(party, failure.pop("refusals", []))
    made = Failure(**failure).error()
    if isinstance(made, AdmissionError):
        made.refusals = Refusals(refusals)
    return made


def _escaped(described: T, keep: str = "") -> T:
    """Return data of texts with all of them escaped.

    Args:
        described: a data class of texts, tuples of texts, and others.
        keep: the field whose line breaks stay: a change may have several lines.
    """
    texts = {each.name: getattr(described, each.name) for each in fields(described)}
    return replace(
        described, **{name: _printable(text, name == keep) for name, text in texts.items()}
    )


def _printable(value: object, lines: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_printable(each, lines) for each in value)
    return printable(value, keep="\n" if lines else "") if isinstance(value, str) else value
