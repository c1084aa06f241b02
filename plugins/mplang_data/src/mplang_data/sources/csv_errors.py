"""Explanations of CSV files that do not read: what is wrong, where, and which option reads it.

Imports Arrow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from mplang_core import TableType
from mplang_data.description import SourceError
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_text import WRONG, Text, header_in
from mplang_data.sources.csv_values import WrongValueError

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_MOST_LINES = 50  # in which a header is looked for that is not the first
FIND = "mplang data schema FILE finds them"
_CELL = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", re.DOTALL)
_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_VALUE = re.compile(r"invalid value '(.*)'", re.DOTALL)
CURRENCY = r"[€$£¥]|\b(?:EUR|USD|CHF|GBP|JPY|RMB|CNY)\b"
_NUMBER = r"[-+(]?\d[\d.,' \u00a0\u202f\u2019]*[-)]?"
_WRITE_WITHOUT = "write the column without it, or offer it as a string"
LOOKS = [
    (rf"{_NUMBER} ?%", "", f"it has a percent sign: {_WRITE_WITHOUT}"),
    (rf"(?:{CURRENCY}) ?{_NUMBER}|{_NUMBER} ?(?:{CURRENCY})", "",
     f"it has a currency: {_WRITE_WITHOUT}"),
    (r"\u2212.*", "", "its minus sign is a dash: write the minus of ASCII (-)"),
    (r"\(.*\d\)", "negative", "parentheses stand for a minus sign (negative: parentheses)"),
    (r"[\d.,' ]*\d ?-", "negative", "a minus sign is behind it (negative: trailing)"),
    (r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}.*", "", "dates are written as 2024-01-31, or as dates, or "
     "timestamps, say (dates: '%d.%m.%Y')"),
    (r"[-+]?\d{1,3}(\.\d{3})+,\d+", "thousands", "it has a decimal comma, and dots between "
     "thousands (decimal: ',', thousands: '.')"),
    (r"[-+]?\d{1,3}(,\d{3})+\.\d+", "thousands", "thousands are grouped (thousands: ',')"),
    (r"[-+]?\d*,\d+", "decimal", "it has a decimal comma (decimal: ','), or groups of thousands "
     "(thousands: ',')"),
    (r"(?i)n\.?/?a\.?|null|none|nan|#n/a|-+|\?|\.|missing", "", "it is a word for no value, which "
     "is an empty field (missing)"),
    (r"(?i)yes|no|y|n|ja|nein|oui|non|on|off|[tf]", "true_words", "bools are true or false "
     "(true_words, false_words)"),
    (r"[-+]?\d+\.\d+", "", "it has a fraction; in the catalogue it may be a float64"),
    (r"[-+]?\d{1,3}(['\u2019 \u00a0\u202f]\d{3})+([.,]\d+)?", "thousands", "thousands are grouped "
     "(thousands: ' ')"),
    (r"[-+]?\d+", "", "it may be beyond the range of the type"),
]  # fmt: skip
"""Patterns of fields that are not values of their type, what is said of them, and the option before
that, which reads them: where the catalogue has it, it is not said."""


def explained(
    text: Text, kind: TableType, options: CsvOptions, error: Exception | None = None
) -> SourceError:
    """Return the error of a CSV file, of which only the detail depends on its rows.

    Args:
        text: its rows and its header.
        kind: the columns that are read.
        options: how it is written, as its owner says.
        error: what Arrow raised, by one thread, which counts the rows; by default nothing, as the
            header is wrong.
    """
    problem = header_problem(text, options, [name for name, _ in kind.columns])
    if problem is not None:
        return SourceError(problem)
    cell, row = _CELL.search(str(error)), _ROW.search(str(error))
    detail = ""
    if cell is not None:
        detail = _of_cell(text, kind, options, cell)
    elif row is not None:
        detail = (
            f"row {int(row[1]) + text.before} has {row[3]} fields, and the header {row[2]}: a "
            "field with a separator or a line in it is quoted; remove lines of totals, and say "
            "which lines are comments (comment)"
        )
    return SourceError(WRONG, detail=detail)


def explained_value(
    row: int, name: str, type: str, error: WrongValueError, options: CsvOptions
) -> SourceError:
    """Return the error of a field that is not a value of the type of its column.

    Args:
        row: its row in the file.
        name: its column.
        type: the type of it.
        error: what is wrong with it.
        options: how the file is written, as its owner says.
    """
    look = error.why or _look(error.value, str(error.__cause__ or ""), options)
    return SourceError(WRONG, detail=_of_value(f"row {row}, column {name!r}", type, look))


def _of_value(where: str, type: str, look: str) -> str:
    return f"{where}: it is not a valid {type}" + (f"; {look}" if look else "")


def _look(value: str, why: str, options: CsvOptions) -> str:
    """Return what a field looks like.

    Args:
        value: the field.
        why: the error of Arrow; may be empty.
        options: how the file is written, as its owner says.
    """
    if "data loss" in why:
        return "it has more digits than the type"
    plain = CsvOptions()
    for pattern, option, look in LOOKS:
        is_said = option and getattr(options, option) != getattr(plain, option)
        if not is_said and re.fullmatch(pattern, value.strip()):
            return look
    if "a zone" in why or "no zone" in why or "zone offset" in why:
        return "a time has a zone only where the catalogue says tz=UTC"
    return ""


def _of_cell(text: Text, kind: TableType, options: CsvOptions, cell: re.Match[str]) -> str:
    column, why = int(cell[1]), cell[3]
    name = text.names[column] if column < len(text.names) else f"number {column + 1}"
    where = f"row {int(cell[2]) + text.before}, " if cell[2] else ""
    where += f"column {name!r}"
    if "UTF8" in why:
        return f"{where}: it is not in {options.encoding} (encoding: cp1252, of Western offices)"
    value = _VALUE.search(why)
    type = dict(kind.columns).get(name, "value of its type")
    return _of_value(where, type, _look(value[1] if value else "", why, options))


def header_problem(text: Text, options: CsvOptions, wanted: Collection[str]) -> str | None:
    """Return why a header is none of a CSV file, ``None`` if it is one.

    Args:
        text: the rows and the header.
        options: how the file is written, as its owner says.
        wanted: columns that it has.
    """
    head, names = text.head, set(text.names)
    if options.encoding == "utf-8" and (head[:2] in _UTF_16 or b"\0" in head.partition(b"\n")[0]):
        return _said("it is in UTF-16, and the catalogue says UTF-8", "encoding: utf-16")
    if set(wanted) <= names or options.names:
        return None
    for separator, called in SEPARATORS.items():
        if len(header_in(head, options, separator)[0]) > len(text.names):
            own = SEPARATORS.get(options.separator, repr(options.separator))
            return _said(
                f"its fields are separated by {called}, and the catalogue says by {own}",
                f"separator: {json.dumps(separator)}",
            )
    if set(wanted) <= {name.strip() for name in names}:
        return _said("there are blanks around the names in its header", "trim: true")
    try:
        head.split(b"\n", 1)[0].decode()
    except UnicodeDecodeError:
        return _said("its header is not in UTF-8", "encoding: cp1252")
    lines = head.splitlines(keepends=True)[:_MOST_LINES]
    for number in range(1, len(lines)):
        if set(wanted) <= {*header_in(b"".join(lines[number:]), options)[0]}:
            skip = options.skip + number
            return _said(
                f"its header is preceded by {skip} line{'s' * (skip > 1)}", f"skip: {skip}"
            )
    return None


def _said(what: str, option: str) -> str:
    return f"{what} (csv: {{{option}}}; {FIND})"
