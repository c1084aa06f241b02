"""Blocks of a document that quote a file: ``py``, with the file in the first line."""

from __future__ import annotations

import re

_QUOTE = re.compile(r"^```py\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def quotes_in(text: str) -> list[tuple[str, str]]:
    """Return the file and the code of each quote."""
    return _QUOTE.findall(text)


def assert_quoted(quote: str, source: str) -> None:
    """Assert that the parts of a quote stand in a file, in that order.

    ``# …`` stands for what is left out. A document breaks lines elsewhere than a file does, so
    spaces and commas before a closing bracket do not count.
    """
    source = _without_breaks(source)
    for part in map(_without_breaks, quote.split("# …\n")):
        assert part in source
        source = source.partition(part)[2]


def _without_breaks(code: str) -> str:
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", code))
