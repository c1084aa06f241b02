"""Detection of types of CSV columns, and of how numbers and dates are written. Imports Arrow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from mplang_data.sources.csv_errors import CURRENCY
from mplang_data.sources.csv_values import (
    NumberFormat,
    WrongValueError,
    all_true,
    dates_of,
    format_pattern,
    without,
)
from mplang_data.sources.csv_words import Fields, Type, Words

MISSING = (
    "", "NA", "N/A", "n/a", "na", "n.a.", "N.A.", "k.A.", "k. A.", "NULL", "null", "Null", "None",
    "none", "nil", "-", "--", "---", "\u2013", "\u2014", "?", ".", "#N/A",
    "#NV", "#VALUE!", "#WERT!", "#DIV/0!", "(null)", "\\N", "missing", "fehlt", "..",
)  # fmt: skip
"""Words that stand for a missing value among numbers and dates."""

TRUE_AND_FALSE = (
    ("true", "false"), ("yes", "no"), ("ja", "nein"), ("oui", "non"), ("si", "no"),
    ("s\u00ed", "no"), ("sim", "n\u00e3o"), ("wahr", "falsch"), ("vrai", "faux"),
    ("y", "n"), ("j", "n"), ("t", "f"), ("on", "off"), ("はい", "いいえ"), ("是", "否"),
)  # fmt: skip
"""Words for true and false, in lower case."""

NUMBERS = tuple(
    NumberFormat(decimal, thousands)
    for thousands in (None, ",", ".", " ", "'")
    for decimal in ".,"
    if decimal != thousands
)
"""Ways in which numbers are written; of equals the first one is proposed."""

_DAYS = (
    [f"%d{sign}%m{sign}%{year}" for year in "Yy" for sign in "./-"]
    + [
        format
        for year in "Yy"
        for sign in "/-"
        for format in (f"%m{sign}%d{sign}%{year}", f"%{year}{sign}%m{sign}%d")
        if format != "%Y-%m-%d"
    ]
    + ["%Y.%m.%d", "%Y年%m月%d日", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%b %d, %Y"]
)
FORMATS = [
    day + time for time in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p") for day in _DAYS
]
"""Formats of dates that are not ISO."""

_ISO = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(?::\d{2}(?P<fraction>\.\d+)?)?"
_ZONE = r"(?:Z|[-+]\d{2}(?::?\d{2})?)"
_DIGITS = r"[-+]?\d+"
_CODE = r"^[-+]?0\d"
EXPONENT = r"^\d+[eE]\d"  # 12E4, as programs do not write numbers


class CsvColumn(NamedTuple):
    """A column of a file, as strings without blanks around.

    Attributes:
        name: its name.
        words: its fields, null for a missing value.
        missing: the words that are missing values in it, if it is of no strings.
    """

    name: str
    words: Words
    missing: Sequence[str]

    @property
    def sample(self) -> Words:
        """Its first fields."""
        return self.words.slice(0, 1000)

    def all(self, pattern: str) -> bool:
        """Return whether all its values have a pattern."""
        pattern = f"^(?:{pattern})$"
        parts = (self.sample, self.words)
        return all(all_true(pc.match_substring_regex(each, pattern)) for each in parts)

    def any(self, pattern: str) -> bool:
        """Return whether one of its values contains a pattern."""
        return bool(pc.any(pc.match_substring_regex(self.words, pattern)).as_py())

    def casts(self, type: Type) -> bool:
        """Return whether all its values are of an Arrow type."""
        try:
            self.words.cast(type)
        except pa.ArrowException:
            return False
        return True


def column_of(name: str, words: Words, missing: Collection[str]) -> CsvColumn:
    """Return a column.

    Args:
        name: its name.
        words: its fields, as strings.
        missing: words for a missing value.
    """
    trimmed = pc.utf8_trim_whitespace(words)
    words = words if trimmed.equals(words) else trimmed  # which may be large
    rest = without(words, missing)
    if not rest.null_count:
        return CsvColumn(name, words, [])
    used = set(pc.unique(words.filter(pc.is_null(rest))).to_pylist())
    return CsvColumn(name, rest, [word for word in missing if word in used])


def plain_type(column: CsvColumn) -> str | None:
    """Return the type of a column that is written as programs write it.

    Returns:
        ``int64``, a type of ISO dates or times, ``string`` for codes with leading zeros and numbers
        of too many digits; ``None`` for another one.
    """
    if column.all(_DIGITS):
        is_number = not column.any(_CODE) and column.casts(pa.int64())
        return "int64" if is_number else "string"
    if column.all(_ISO) and column.casts(pa.date32()):
        return "date32[day]"
    if column.all(_TIME) and _at(column).casts(pa.timestamp("us")):
        return "time64[us]"
    zone = "" if column.all(f"{_ISO}[ T]{_TIME}") else _ZONE
    if column.all(f"{_ISO}[ T]{_TIME}{zone}"):
        unit = "ns" if column.any(r"\.\d{7}") else "us" if column.any(r"\.\d") else "s"
        type = pa.timestamp("us", "UTC") if zone else pa.timestamp(unit)
        return str(type) if column.casts(type) else None
    return None


def _at(column: CsvColumn) -> CsvColumn:
    words = pc.binary_join_element_wise("1970-01-01", column.words, " ")
    return column._replace(words=words)


class Bools(NamedTuple):
    """Words of a column of bools.

    Attributes:
        true_words: those for true.
        false_words: those for false.
    """

    true_words: list[str]
    false_words: list[str]


def words_of_bools(column: CsvColumn, known: Fields) -> Bools | None:
    """Return the words for true and those for false, if a column has no others.

    Args:
        column: the column.
        known: what the owner says, as fields of :class:`CsvOptions`.
    """
    unique = pc.unique(column.words.drop_null())
    if not 0 < len(unique) <= 8:
        return None
    words = unique.to_pylist()
    if "true_words" in known or "false_words" in known:
        true, false = (known.get(each, ()) for each in Bools._fields)
        return Bools([], []) if {*words} <= {*true, *false} else None
    for true, false in TRUE_AND_FALSE:
        lower = {word.lower() for word in words}
        if lower <= {true, false} and (true == "true" or len(lower) == 2):
            pair = ([word for word in words if word.lower() == each] for each in (true, false))
            return Bools(*pair)
    return None


def sign_of(column: CsvColumn) -> str | None:
    """Return how negative numbers of a column are written; ``None`` if in two ways."""
    behind, around = column.any(r"\d ?-$"), column.any(r"^\(.*\)$")
    if behind and around:
        return None
    return "trailing" if behind else "parentheses" if around else "minus"


def numbers_in(column: CsvColumn, sign: str, known: Fields) -> list[NumberFormat]:
    """Return the ways in which numbers may be written that all values of a column follow.

    Args:
        column: the column.
        sign: how negative ones are written.
        known: what the owner says, as fields of :class:`CsvOptions`.
    """
    tried = [each._replace(negative=sign) for each in NUMBERS]
    for field in ("decimal", "thousands"):
        if field in known:
            tried = [each for each in tried if getattr(each, field) == known[field]]
    sample = [each for each in tried if each.are(column.sample)]
    return [each for each in sample if each.are(column.words)]


def number_type(column: CsvColumn, numbers: NumberFormat) -> str:
    """Return the type of a column of numbers, which may be of codes."""
    plain = column._replace(words=numbers.plain(column.words))
    if plain.any(_CODE) or plain.any(EXPONENT):
        return "string"
    if plain.all(_DIGITS):
        return "int64" if plain.casts(pa.int64()) else "string"
    return "double"


def formats_of(column: CsvColumn, known: Fields) -> Iterator[tuple[str, str]]:
    """Yield the formats that all dates of a column follow, each with the type of the column.

    Args:
        column: the column.
        known: what the owner says, as fields of :class:`CsvOptions`.
    """
    first = next((word for word in column.sample.to_pylist() if word is not None), "")
    for field, type in (("dates", pa.date32()), ("timestamps", pa.timestamp("s"))):
        own = known.get(field)
        own = own.get(column.name) if isinstance(own, dict) else own
        for format in FORMATS if own is None else [own]:
            is_date = "%H" not in format and "%I" not in format
            if is_date != (field == "dates") or not re.fullmatch(format_pattern(format), first):
                continue
            try:
                dates_of(column.words, type, format)
            except (WrongValueError, pa.ArrowException):
                continue
            yield format, str(type)


_SIGNS = {
    "percent signs": "%", "currencies": CURRENCY, "minus signs that are dashes": "^\u2212",
    "the form of Excel's formulas": '[="]',
}  # fmt: skip


def refused_sign(column: CsvColumn) -> str | None:
    """Return what keeps the numbers of a column from being numbers: a sign of percent or money."""
    for called, pattern in _SIGNS.items():
        if not column.any(pattern):
            continue
        words = pc.replace_substring_regex(column.words, pattern, "")
        rest = column._replace(words=pc.utf8_trim_whitespace(words))
        if numbers_in(rest, sign_of(rest) or "minus", {}):
            return called
    return None
