"""Functions in a file of a user: the lines that errors have to name."""

from __future__ import annotations

import linecache
import re
from typing import Any

FILE = "kit_user.py"
SOURCE = """
def fails(*args, **kwargs):
    raise ValueError("the kit has it fail here")


def gives_no_value(*args, **kwargs):
    return object()


def call(function, *args, **kwargs):
    return function(*args, **kwargs)
"""


def _load() -> dict[str, Any]:
    """Run the source as a module that is not part of mplang."""
    lines = SOURCE.splitlines(keepends=True)
    linecache.cache[FILE] = (len(SOURCE), None, lines, FILE)
    module: dict[str, Any] = {"__name__": FILE.removesuffix(".py")}
    exec(compile(SOURCE, FILE, "exec"), module)
    return module


_module = _load()
fails = _module["fails"]
"""Function that raises whatever it is given."""
gives_no_value = _module["gives_no_value"]
"""Function that returns what is not a value of a program."""
call = _module["call"]
"""``call(function, *args, **kwargs)`` calls a function from the user's file."""


def names_a_line(error: Exception) -> bool:
    """Return whether an error names a line: of this file, or of the op's, if it is not a plugin."""
    return bool(re.search(r"\.py:\d+", str(error)))
