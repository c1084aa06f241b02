"""Explanations of CSV files that do not read: what is wrong, where, and how to convert them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from mplang_core import TableType
from mplang_data.description import SourceError

_HEAD = 1 << 20  # bytes in which a header is looked for, and how numbers are written
_CELL = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", re.DOTALL)
_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_COMMA = r"[-+]?[\d.' ]*,\d+"
_LOOKS = [
    (re.compile(_COMMA), "it has a decimal comma (decimal=',')"),
    (re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{2,4}.*"), "dates are written as 2024-01-31 (dayfirst)"),
    (re.compile(r"(?i)n/?a|null|none|nan|#n/a|-+|\?|\.|missing"), "it is a word for no value, "
     "which is an empty field (na_values)"),
    (re.compile(r"(?i)yes|no|y|n|ja|nein|oui|non|on|off"), "bools are true or false (true_values)"),
    (re.compile(r"[-+]?\d+\.\d+"), "it has a fraction; in the catalogue it may be a float64"),
    (re.compile(r"[-+]?\d{1,3}([' ,]\d{3})+(\.\d+)?"), "thousands are grouped (thousands=',')"),
    (re.compile(r"[-+]?\d+"), "it may be beyond the range of the type"),
]  # fmt: skip


def explained(data: Any, kind: TableType, error: Exception | None = None) -> SourceError:
    """Return the error of a CSV file, of which only the detail depends on its rows.

    Args:
        data: the file, as an Arrow buffer.
        kind: the columns that are read.
        error: what Arrow raised, by one thread, which counts the rows; by default nothing, as the
            header is wrong.
    """
    found = header_problem(data, [name for name, _ in kind.columns])
    if found is not None:
        return SourceError(found, detail=_options(data))
    cell, row = _CELL.search(str(error)), _ROW.search(str(error))
    detail = ""
    if cell is not None:
        detail = _of_cell(data, kind, int(cell[1]), cell[2], cell[3])
    elif row is not None:
        detail = (
            f"row {row[1]} has {row[3]} fields, and the header {row[2]}: a field with a comma or a "
            'line in it is quoted by ", a comment is no row'
        )
    return SourceError("it is not the CSV file that its owner says", detail=detail)


def _of_cell(data: Any, kind: TableType, column: int, row: str | None, why: str) -> str:
    names = names_in(head_of(data))
    name = names[column] if column < len(names) else f"number {column + 1}"
    where = f"row {row}, column {name!r}" if row else f"column {name!r}"
    type = dict(kind.columns).get(name, "of its type")
    if "UTF8" in why:
        return f"{where}: it is not in UTF-8 (encoding='latin-1', or 'cp1252')"
    value = _VALUE.search(why)
    looks = [text for look, text in _LOOKS if value and look.fullmatch(value[1].strip())]
    zone = "a zone" in why or "no zone" in why
    looks += ["a time has a zone where the catalogue says tz=UTC, and else none"] if zone else []
    looks += ["it has more digits than the type"] if "data loss" in why else []
    return f"{where}: it is no {type}" + "".join(f"; {text}" for text in looks[:1])


def head_of(data: Any) -> bytes:
    """Return the beginning of a file, without a byte order mark and blank lines."""
    head: bytes = data.slice(0, min(data.size, _HEAD)).to_pybytes()
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")


def names_in(head: bytes, separator: str = ",") -> Sequence[str]:
    """Return the names in a header, which may have lines in quotes."""
    lines = io.StringIO(head.decode(errors="replace"), newline="")
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    except csv.Error:  # a name of over 128 KiB
        return []


def header_problem(data: Any, wanted: Sequence[str] | None = None) -> str | None:
    """Return why a header is none of a CSV file, ``None`` if it is one.

    Args:
        data: the file, as an Arrow buffer.
        wanted: columns that it has; by default it may have any.
    """
    head = head_of(data)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it is in UTF-16, and a CSV file here in UTF-8 (encoding='utf-16')"
    names = names_in(head)
    if wanted is not None and set(wanted) <= set(names):
        return None
    for separator, called in _SEPARATORS.items():
        if len(names_in(head, separator)) > len(names):
            return (
                f"its fields are separated by {called}, and those of a CSV file here by commas "
                f"(sep={separator!r})"
            )
    if head.startswith((b"#", b"sep=")):
        return "its first line is a comment, and no header (skiprows=1)"
    if wanted is not None and set(wanted) <= {name.strip() for name in names}:
        return "there are blanks around the names in its header (skipinitialspace=True)"
    try:
        head.split(b"\n", 1)[0].decode()
    except UnicodeDecodeError:
        return "its header is not in UTF-8 (encoding='latin-1', or 'cp1252')"
    return None


def _options(data: Any) -> str:
    """Return how to convert a file, by what it looks like."""
    head, found = head_of(data), []
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        found.append("encoding='utf-16'")
    else:
        try:
            head.decode()
        except UnicodeDecodeError as error:
            if error.start < _HEAD - 8:  # else a character is cut
                found.append("encoding='latin-1'")
    for separator in _SEPARATORS:
        if len(names_in(head, separator)) > len(names_in(head)):
            found.append(f"sep={separator!r}")
            number = rf"(?m)(^|{re.escape(separator)}){_COMMA}({re.escape(separator)}|\r?$)"
            if re.search(number, head.decode("latin-1")):
                found.append("decimal=','")
            break
    options = "".join(f", {each}" for each in found)
    return f"convert it, as by pandas.read_csv(path{options}).to_csv(path, index=False)"
