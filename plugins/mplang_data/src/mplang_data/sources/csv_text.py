"""Text of CSV files: transcoded to UTF-8, and taken apart into header and rows. Imports Arrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from mplang_data.description import SourceError
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_words import Buffer

HEAD = 1 << 20  # bytes in which a header is looked for
_CHUNK = 1 << 20  # bytes
_BOM = codecs.BOM_UTF8
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")

WRONG = "it is not the CSV file that its owner says"


class Text(NamedTuple):
    """Rows of a CSV file, in UTF-8.

    Attributes:
        rows: an Arrow buffer, without the header.
        names: the names of the columns.
        before: lines before the first row.
        head: the beginning, from the header on.
    """

    rows: Buffer
    names: Sequence[str]
    before: int
    head: bytes


def text_of(data: Buffer, options: CsvOptions) -> Text:
    """Return the rows and the header of a file.

    Args:
        data: the file, as an Arrow buffer.
        options: how it is written.

    Raises:
        SourceError: it has bytes that are none of its encoding.
    """
    data = in_utf8(data, options.encoding)
    start, lines = _skipped(data, options.skip)
    rows = data.slice(start)
    if options.comment is not None:
        rows = _without_comments(rows, options)
    head: bytes = rows.slice(0, min(rows.size, HEAD)).to_pybytes()
    names: Sequence[str] = options.names
    size = 0
    if not names:
        blank = len(head) - len(head.lstrip(b"\r\n"))
        names, size = header_in(head[blank:], options)
        size += blank
    names = [*names, ""] if options.trailing_separator else names
    return Text(rows.slice(size), names, lines + _count(head[:size]), head)


def in_utf8(data: Buffer, encoding: str) -> Buffer:
    """Return a buffer of text in UTF-8; it is the same if it is in UTF-8.

    Raises:
        SourceError: it has bytes that are none of its encoding.
    """
    if encoding == "utf-8":
        return data
    decoder = codecs.getincrementaldecoder(encoding)()
    made = pa.BufferOutputStream()
    try:
        for start in range(0, data.size, _CHUNK):
            chunk = data.slice(start, min(_CHUNK, data.size - start)).to_pybytes()
            made.write(decoder.decode(chunk).encode())
        made.write(decoder.decode(b"", True).encode())
    except UnicodeError:
        line = _wrong_line(data.to_pybytes(), encoding)
        detail = f"line {line}: it has bytes that are not valid {encoding}"
        raise SourceError(WRONG, detail=detail) from None
    return made.getvalue()


def _wrong_line(data: bytes, encoding: str) -> int:
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        return _count(data[: error.start].decode(encoding, errors="ignore").encode()) + 1
    except UnicodeError:  # as of UTF-16 without a mark
        return 1
    return _count(data.decode(encoding, errors="ignore").encode(errors="ignore")) + 1


def _skipped(data: Buffer, lines: int) -> tuple[int, int]:
    """Return where the text begins, and the number of lines before it."""
    head = data.slice(0, min(data.size, HEAD)).to_pybytes()
    start = len(_BOM) if head.startswith(_BOM) else 0
    for number in range(lines):
        if start >= len(head):
            raise SourceError(WRONG, detail=f"it has {number} lines, and skip says {lines}")
        start = _LINE.match(head, start).end()  # type: ignore[union-attr]
    return start, lines


def _count(text: bytes) -> int:
    return len(re.findall(rb"\r\n|\r|\n", text))


def header_in(
    head: bytes, options: CsvOptions, separator: str | None = None
) -> tuple[Sequence[str], int]:
    """Return the names in the first record, and the number of its bytes.

    Args:
        head: the text, in UTF-8.
        options: how it is written.
        separator: the character between fields, if another one is tried.
    """
    lines = io.StringIO(head.decode("latin-1"), newline="")  # a character stands for a byte
    try:
        record = next(reader(lines, separator or options.separator, options.quote), [])
    except csv.Error:  # a name of over 128 KiB
        return [], 0
    names = [name.encode("latin-1").decode(errors="replace") for name in record]
    return [name.strip() if options.trim else name for name in names], lines.tell()


def reader(lines: Iterable[str], separator: str, quote: str | None) -> Iterator[list[str]]:
    """Return Python's reader of records, which is slow, for the beginning of a file."""
    if quote is None:
        return csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=separator, quotechar=quote)


def _without_comments(data: Buffer, options: CsvOptions) -> Buffer:
    """Return rows without the lines that begin with a comment's character, outside of quotes."""
    text = np.frombuffer(data, np.uint8)
    ends = (text == ord("\n")) | ((text == ord("\r")) & (np.append(text[1:], 0) != ord("\n")))
    starts = np.append(0, np.flatnonzero(ends) + 1)
    starts = starts[starts < len(text)]
    is_comment = text[starts] == ord(options.comment or "#")
    if options.quote is not None:
        quotes = np.bitwise_xor.accumulate(text == ord(options.quote))  # odd numbers are true
        is_comment &= ~np.append(False, quotes)[starts]
    if not is_comment.any():
        return data
    lengths = np.diff(np.append(starts, len(text)))
    return pa.py_buffer(text[np.repeat(~is_comment, lengths)].tobytes())
