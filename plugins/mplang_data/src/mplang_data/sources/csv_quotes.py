"""Check of the quotes of a CSV file, which Arrow reads whatever stands behind them."""

from __future__ import annotations

import csv
import io

import numpy as np

from mplang_data.description import SourceError
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_text import WRONG
from mplang_data.sources.csv_words import Buffer

_CHUNK = 16 << 20  # bytes


def check_quotes(rows: Buffer, options: CsvOptions) -> None:
    """Check that each quote has its end, and that no field has more behind it.

    Args:
        rows: the text, in UTF-8.
        options: how it is written.

    Raises:
        SourceError: a quote has none, which would swallow rows; or a field goes on behind it, as
            where quotes within fields are preceded by backslashes.
    """
    if options.quote is None:
        return
    around = np.frombuffer(f"{options.separator}{options.quote}\r\n".encode(), np.uint8)
    text, count, is_plain = np.frombuffer(rows, np.uint8), 0, True
    for start in range(0, len(text), _CHUNK):
        quotes = np.flatnonzero(text[start : start + _CHUNK] == ord(options.quote)) + start
        is_opening = (np.arange(count, count + len(quotes)) % 2) == 0
        count += len(quotes)
        beside = quotes + np.where(is_opening, -1, 1)
        beside = beside[(beside >= 0) & (beside < len(text))]
        is_plain = is_plain and bool(np.isin(text[beside], around).all())
    if count % 2:
        raise SourceError("unterminated quoted field")
    if not is_plain:  # perhaps quotes within fields that have none around
        _check_slowly(rows, options)


def _check_slowly(rows: Buffer, options: CsvOptions) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]

    lines = io.TextIOWrapper(pa.BufferReader(rows), "latin-1", newline="")
    records = csv.reader(lines, delimiter=options.separator, quotechar=options.quote, strict=True)
    try:
        for _ in records:
            pass
    except csv.Error as error:
        why = "a quote within a quoted field is not doubled: double it, or leave out the outer ones"
        if "expected after" not in str(error):
            why = "it has quotes within unquoted fields, and a field of more than 128 KiB"
        detail = f"line {records.line_num} of its rows: {why}"
        raise SourceError(WRONG, detail=detail) from None
