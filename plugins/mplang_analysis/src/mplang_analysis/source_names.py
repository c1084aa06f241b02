"""Names of private data in no data set: what was put, inputs, what is stored, what ops read.

Labels have these names, and rules of owners take them from here.
"""

from __future__ import annotations

from mplang_analysis.labels import SEVERAL
from mplang_analysis.words import declared_reads, has_family

PUT = "put"
"""What a coordinator put at a party, outside of a program."""

EARLIER_RUN = "an earlier run"
"""What a party may have of runs of which nothing is known."""

_INPUT = "input "
_STORED = "stored "


def input_name(index: int) -> str:
    """Return the name of an input of a program of which nothing is known.

    Example:
        >>> input_name(0)
        'input 0'
    """
    return f"{_INPUT}{index}"


def stored_name(name: str) -> str:
    """Return the name of what is stored under a name, and may be anybody's.

    Example:
        >>> stored_name("model")
        'stored model'
    """
    return f"{_STORED}{name}"


def is_source_name(text: str) -> bool:
    """Return whether data in no data set may have a name.

    An op that does not declare what it reads gives its own name, as ``table.from_csv``; one that
    does gives names that its package declares in :class:`Words`.

    Example:
        >>> is_source_name("put"), is_source_name("putt"), is_source_name("input 3")
        (True, False, True)
    """
    if text in (PUT, EARLIER_RUN, SEVERAL) or text in declared_reads():
        return True
    if text.startswith(_INPUT):
        return text.removeprefix(_INPUT).isdecimal()
    if text.startswith(_STORED):
        return bool(text.removeprefix(_STORED))
    family, _, op = text.partition(".")
    return op.isidentifier() and has_family(family)


def kinds_of_names() -> list[str]:
    """Return what data in no data set may be called, for messages.

    Example:
        >>> kinds_of_names()[:3]
        ['put', 'input 0', 'stored NAME']
    """
    general = [PUT, input_name(0), stored_name("NAME"), EARLIER_RUN, SEVERAL, "FAMILY.OP"]
    return [*general, *sorted(declared_reads())]
