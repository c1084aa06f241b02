"""Strings that CPython interns: their table has the size that it keeps.

Names of attributes and parts of paths go through one table of a process. It is rebuilt once as
many have gone through it as it has room for, whether or not they are still there, and then has
twice the size if more than a third of it is in use: two megabytes more, at some time in the life
of each process.

References:
    CPython's Objects/dictobject.c, ``insertion_resize`` and ``GROWTH_RATE``.
"""

from __future__ import annotations

import sys

ENOUGH = 100_000  # more than are in use, which is the room that such a table has at most
STAY = sys.version_info[:2] == (3, 12)  # its strings stay for good once they are interned


def settle_interned() -> None:
    """Rebuild the table now, once what a process imports is there; it takes 20 ms.

    A process that is forked afterwards shares its pages, and it grows in none of them.
    """
    if STAY:
        return
    for number in range(ENOUGH):
        sys.intern(f"mplang {number}")  # which nobody keeps
