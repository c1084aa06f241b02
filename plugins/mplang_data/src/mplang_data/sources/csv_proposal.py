"""Proposal of the options and the columns of a CSV file, with reasons and doubts. Imports Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from mplang_core import TableType
from mplang_data.description import SourceError
from mplang_data.sources.csv_errors import explained
from mplang_data.sources.csv_file import parsed
from mplang_data.sources.csv_layout import layout_of
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_text import text_of
from mplang_data.sources.csv_types import (
    EXPONENT,
    MISSING,
    NUMBERS,
    Bools,
    CsvColumn,
    column_of,
    formats_of,
    number_type,
    numbers_in,
    plain_type,
    refused_sign,
    sign_of,
    words_of_bools,
)
from mplang_data.sources.csv_values import GROUPS, NumberFormat
from mplang_data.sources.csv_words import Buffer, Fields, Words

STRING = "string"
_CODES = "it has codes with leading zeros, or numbers beyond int64"
_DAY = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"


class Proposal(NamedTuple):
    """Proposed catalogue entry of a CSV file.

    Attributes:
        options: fields of :class:`CsvOptions` that are not as by default.
        columns: the types of its columns.
        reasons: what was found and why, as sentences.
        doubts: what may be otherwise, and what its owner says then.
    """

    options: dict[str, Any]
    columns: dict[str, str]
    reasons: Sequence[str]
    doubts: Sequence[str]


def proposal_of(data: Buffer, known: Fields) -> Proposal:
    """Return a proposal for a file, all rows of which are looked at.

    Args:
        data: the file, as an Arrow buffer.
        known: what its owner says of it, as fields of :class:`CsvOptions`.

    Raises:
        SourceError: it is written in no way that is read.
    """
    layout = layout_of(data, known)
    made = _Columns(layout.options, known, [*layout.reasons], [*layout.doubts])
    raw = made.parse(data)
    for find in (_find_plain, _find_numbers, _find_dates, _find_rest):
        find(made)
    _count_empty_rows(made)
    _find_blanks(made, raw)
    _find_missing(made)
    names = [name for name in raw if name in made.types]
    if not names:
        raise SourceError("no column of it has values, and so a type: give its columns")
    return Proposal(
        CsvOptions(**made.options).model_dump(mode="json", exclude_defaults=True),
        {name: made.types[name] for name in names}, made.reasons, made.doubts,
    )  # fmt: skip


class _Columns:
    """Columns of a file: those whose type is open, and the types of the others."""

    def __init__(
        self, options: dict[str, Any], known: Fields, reasons: list[str],
        doubts: list[str],
    ) -> None:  # fmt: skip
        self.options, self.known, self.reasons, self.doubts = options, known, reasons, doubts
        self.open: dict[str, CsvColumn] = {}
        self.closed: dict[str, CsvColumn] = {}
        self.types: dict[str, str] = {}

    def parse(self, data: Buffer) -> dict[str, Words]:
        """Parse the columns; return their fields as they are, by name."""
        options = CsvOptions(**{**self.options, "missing_strings": False})
        text = text_of(data, options)
        counts = Counter(text.names)
        for name, count in counts.items():
            if not name and not options.trailing_separator:
                self.doubts.append(f"{count} columns have no name, and are not offered")
            elif count > 1:
                self.doubts.append(f"{count} columns are called {name!r}, and are not offered")
        names = [name for name, count in counts.items() if name and count == 1]
        if not names:
            raise SourceError("; ".join(["its header has no name of one column", *self.doubts]))
        types = pa.schema((name, pa.string()) for name in names)
        try:
            table = parsed(text, types, options)
        except pa.ArrowException:
            kind = TableType(tuple((name, STRING) for name in names))
            try:
                parsed(text, types, options, threads=False)
            except pa.ArrowException as error:
                reason = explained(text, kind, options, error)
                reason.detail = "; ".join([reason.detail, *self.doubts])
                raise reason from error
            raise
        missing = self.known.get("missing", MISSING)
        raw = dict(zip(names, table.columns, strict=True))
        self.open = {name: column_of(name, words, missing) for name, words in raw.items()}
        return raw

    def close(self, name: str, type: str | None) -> None:
        """Settle the type of a column; ``None`` for none."""
        self.closed[name] = self.open.pop(name)
        if type is not None:
            self.types[name] = type


def _find_plain(made: _Columns) -> None:
    """Find columns without values, of bools, and of what programs write."""
    words = list[Bools]()
    for name, column in list(made.open.items()):
        if column.words.null_count == len(column.words):
            made.close(name, None)
            if len(column.words):
                made.doubts.append(f"column {name!r} has no values, so no type, and is not offered")
        elif (bools := words_of_bools(column, made.known)) is not None:
            made.close(name, "bool")
            words.append(bools)
        elif name in _by_column(made.known):
            continue
        elif (type := plain_type(column)) is not None:
            made.close(name, type)
            if type == "int64" and column.all(_DAY):
                made.doubts.append(
                    f"column {name!r} is int64, and may be of dates: say dates: "
                    f"{{{name!r}: '%Y%m%d'}}"
                )
            if type == STRING:
                made.reasons.append(f"column {name!r} is of strings: {_CODES}")
    _set_words(made, words)


def _set_words(made: _Columns, bools: Sequence[Bools]) -> None:
    plain = CsvOptions()
    for field, known in (("true_words", plain.true_words), ("false_words", plain.false_words)):
        words = sorted({word for each in bools for word in getattr(each, field)})
        if set(words) <= set(known) or field in made.known:
            continue
        made.options[field] = words
        sentence = f"{field} {', '.join(words)}: a column has no others"
        if any(len(word) == 1 for word in words):
            made.doubts.append(f"{sentence}; offer it as a string if it is of no bools")
        else:
            made.reasons.append(sentence)


def _by_column(known: Fields) -> set[str]:
    """Return the columns that its owner says are of dates or timestamps."""
    formats = [known.get(field) for field in ("dates", "timestamps")]
    return {name for each in formats if isinstance(each, dict) for name in each}


def _find_numbers(made: _Columns) -> None:
    """Find columns of numbers, and how they are written, from all of them together."""
    ways: dict[str, list[NumberFormat]] = {}
    for name, column in made.open.items():
        sign = made.known.get("negative") or sign_of(column)
        accepted = [] if sign is None else numbers_in(column, sign, made.known)
        if accepted:
            ways[name] = accepted
    if not ways:
        return
    chosen, rivals = _most_accepted(made, ways)
    signs = {ways[name][0].negative for name in ways} - {"minus"}
    sign = min(signs, default="minus")
    fields = {"decimal": chosen.decimal, "thousands": chosen.thousands, "negative": sign}
    for name, accepted in ways.items():
        column = made.open[name]
        numbers = accepted[0]._replace(decimal=chosen.decimal, thousands=chosen.thousands)
        if numbers not in accepted or numbers.negative not in ("minus", sign):
            made.close(name, STRING)
            made.doubts.append(
                f"column {name!r} is of strings: its numbers are written in another way than those "
                "of other columns"
            )
        elif (rival := _other_values(column, numbers, rivals)) is not None:
            made.close(name, STRING)
            made.doubts.append(
                f"column {name!r} is of strings: it is written as 1{_grouping(rival, numbers)}234, "
                f"which may be {_reading(numbers)} or {_reading(rival)}; say {_said(numbers)} or "
                f"{_said(rival)}"
            )
        else:
            made.close(name, number_type(column, numbers))
            _note_numbers(made, column, numbers)
    plain = NumberFormat()._asdict()
    for field, value in fields.items():
        is_used = any(made.types[name] != STRING for name in ways)
        if is_used and value != plain[field] and field not in made.known:
            made.options[field] = value
            made.reasons.append(_REASONS[field].format(value))


_REASONS = {
    "decimal": "decimal {!r}: all columns of numbers are so read",
    "thousands": "thousands {!r}: numbers have it between groups of three digits",
    "negative": "negative {!r}: numbers are written so",
}


def _most_accepted(
    made: _Columns, ways: Mapping[str, Sequence[NumberFormat]]
) -> tuple[NumberFormat, Sequence[NumberFormat]]:
    """Return the way that most columns of numbers follow, and the others that as many do."""
    plain = [{each._replace(negative="minus") for each in accepted} for accepted in ways.values()]
    counts = Counter(each for accepted in plain for each in accepted)
    most = max(counts.values())
    best = [each for each in NUMBERS if counts.get(each) == most]
    if made.options.get("separator", ",") == ",":  # between such fields dots are decimal
        best = [each for each in best if each.thousands != "."] or best
    return best[0], best[1:]


def _other_values(
    column: CsvColumn, numbers: NumberFormat, rivals: Sequence[NumberFormat]
) -> NumberFormat | None:
    """Return another way by which a column has other values; ``None`` if there is none."""
    for rival in rivals:
        rival = rival._replace(negative=numbers.negative)
        signs = GROUPS.get(rival.thousands or "")
        if rival.decimal == numbers.decimal and (signs is None or not column.any(signs)):
            continue  # which is faster than to compare
        same = rival.plain(column.words).equals(numbers.plain(column.words))
        if rival.are(column.words) and not same:
            return rival
    return None


def _grouping(one: NumberFormat, other: NumberFormat) -> str:
    return one.thousands or other.thousands or one.decimal


def _reading(numbers: NumberFormat) -> str:
    return "1234" if numbers.thousands is not None else "1.234"


def _said(numbers: NumberFormat) -> str:
    thousands = f", thousands: {numbers.thousands!r}" if numbers.thousands else ""
    return f"{{decimal: {numbers.decimal!r}{thousands}}}"


def _note_numbers(made: _Columns, column: CsvColumn, numbers: NumberFormat) -> None:
    name, plain = column.name, column._replace(words=numbers.plain(column.words))
    if made.types[name] == STRING:
        why = "12E4 is a code, and no number there" if plain.any(EXPONENT) else _CODES
        made.doubts.append(f"column {name!r} is of strings: {why}")
    lengths = pc.unique(pc.utf8_length(column.words.drop_null()))
    may_be_codes = len(lengths) == 1 < len(column.words) and "thousands" not in made.known
    if made.types[name] == "int64" and may_be_codes:
        made.doubts.append(f"column {name!r}: all its numbers are as long, so they may be codes")
    if made.types[name] != "double":
        return
    if plain.any(r"[1-9]\.?(?:\d\.?){17}"):
        made.doubts.append(
            f"column {name!r} is a float64, which does not hold all digits: a decimal does"
        )
    elif plain.all(r"-?\d+\.\d\d"):
        made.reasons.append(f"column {name!r} has two decimals: as decimal(18, 2) it is exact")
    elif plain.all(r"-?\d{1,3}\.\d{3}") and "decimal" not in made.known:
        made.doubts.append(f"column {name!r} is as 1.234, and read as a fraction, not as 1234")


def _find_dates(made: _Columns) -> None:
    """Find columns of dates; the day is before the month, or behind it, as in other columns."""
    formats = {name: dict(formats_of(column, made.known)) for name, column in made.open.items()}
    certain = {_days_in(next(iter(each))) for each in formats.values() if len(each) == 1}
    by_field: dict[str, dict[str, str]] = {"dates": {}, "timestamps": {}}
    for name, types in formats.items():
        agreed = [format for format in types if _days_in(format) in certain]
        if not types:
            continue
        if len(types) > 1 and len(agreed) != 1:
            made.close(name, STRING)
            made.doubts.append(
                f"column {name!r} is of strings: its dates are as {' or '.join(types)}; say which"
            )
            continue
        format = agreed[0] if agreed else next(iter(types))
        made.close(name, types[format])
        by_field["dates" if types[format].startswith("date") else "timestamps"][name] = format
        if len(types) > 1:
            made.reasons.append(f"column {name!r} is as {format}, since another column is")
    for field, columns in by_field.items():
        if columns and field not in made.known:
            used = sorted(set(columns.values()))
            made.options[field] = used[0] if len(used) == 1 else columns
            made.reasons.append(f"{field} {', '.join(used)}: all fields of columns are so read")
            if any("%y" in format for format in used):
                made.doubts.append(f"{field}: years of two digits are 1969 to 2068")


def _days_in(format: str) -> str:
    return format.partition(" %H")[0].partition(" %I")[0]


def _find_rest(made: _Columns) -> None:
    """Take the other columns for strings, and say so where they look like numbers."""
    for name, column in list(made.open.items()):
        made.close(name, STRING)
        sign = refused_sign(column)
        if sign is not None:
            made.doubts.append(
                f"column {name!r} is of strings: its numbers have {sign}; write it without them to "
                "offer numbers"
            )


def _find_blanks(made: _Columns, raw: Mapping[str, Words]) -> None:
    """Find out whether blanks around fields are part of them."""
    if "trim" in made.options:
        return
    for name, words in raw.items():
        trimmed = pc.utf8_trim_whitespace(words)
        padded = pc.not_equal(words, trimmed)
        type = made.types.get(name, STRING)
        if type in ("int64", "double"):  # Arrow trims these
            padded = pc.and_(padded, pc.is_null(made.closed[name].words))
        count, filled = (pc.sum(each).as_py() or 0 for each in (padded, pc.not_equal(trimmed, "")))
        if count > (filled / 2 if type == STRING else 0):
            made.options["trim"] = True
            made.reasons.append(f"trim: column {name!r} has blanks around its fields")
            break


def _count_empty_rows(made: _Columns) -> None:
    empty = None
    for column in made.closed.values():
        no_value = pc.fill_null(pc.equal(column.words, ""), True)
        empty = no_value if empty is None else pc.and_(empty, no_value)
    count = 0 if empty is None or len(made.closed) == 1 else pc.sum(empty).as_py() or 0
    if count:
        made.doubts.append(
            f"{count} rows have no values, and are rows: remove them if they are not"
        )


def _find_missing(made: _Columns) -> None:
    """Find the words for missing values among numbers, dates and bools."""
    if "missing" in made.known:
        return
    words = dict.fromkeys([""])
    for name, column in made.closed.items():
        others = [word for word in column.missing if word]
        if others and made.types.get(name, STRING) != STRING:
            words |= dict.fromkeys(others)
            made.reasons.append(f"missing {', '.join(others)}: column {name!r} has no other words")
        elif others and name in made.types:
            made.doubts.append(
                f"column {name!r} is of strings, and {', '.join(others)} among them: if it is not "
                "a value, say missing, and missing_strings: true"
            )
    if len(words) > 1:
        made.options["missing"] = list(words)
