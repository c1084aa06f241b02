"""Values of CSV fields that Arrow does not convert itself: exact, or refused. Imports Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from mplang_data.sources.csv_options import CODES, CsvOptions, format_codes
from mplang_data.sources.csv_words import Type, Values, Words

GROUPS = {",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
"""Characters between groups of digits, each with the pattern of those that stand for it."""

_SIGNED = {
    "minus": "[-+]?(?:{0})", "trailing": "[-+]?(?:{0})|(?:{0}) ?-",
    "parentheses": r"[-+]?(?:{0})|\((?:{0})\)",
}  # fmt: skip
_MINUS = {"trailing": "^(.*?) ?-$", "parentheses": r"^\((.*)\)$"}
INFINITE = r"(?i)^\s*[-+]?inf(inity)?\s*$"


class WrongValueError(Exception):
    """A field is not a value of the type of its column.

    Args:
        index: of the row.
        value: the field.
        why: what is wrong with it, without its text; empty if the text says so.
    """

    def __init__(self, index: int, value: str, why: str = "") -> None:
        super().__init__(value)
        self.index, self.value, self.why = index, value, why


class NumberFormat(NamedTuple):
    """Format of numbers; see :class:`CsvOptions`.

    Example:
        >>> re.fullmatch(NumberFormat(",", ".").pattern, "-1.234,50") is not None
        True
        >>> re.fullmatch(NumberFormat(",", ".").pattern, "1.23") is not None
        False
    """

    decimal: str = "."
    thousands: str | None = None
    negative: str = "minus"

    @property
    def pattern(self) -> str:
        """The pattern of a number, of whatever type."""
        digits, decimal = r"\d+", re.escape(self.decimal)
        if self.thousands is not None:  # also of India, 12,34,567
            sign = GROUPS[self.thousands]
            digits += rf"|\d{{1,3}}(?:{sign}\d{{3}})+|\d{{1,2}}(?:{sign}\d{{2}})+{sign}\d{{3}}"
        number = rf"(?:(?:{digits})(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?"
        return f"{_SIGNED[self.negative].format(number)}|[-+]?(?i:nan|inf|infinity)"

    def are(self, words: Words) -> bool:
        """Return whether all words are numbers; null is one."""
        return all_true(pc.match_substring_regex(words, f"^(?:{self.pattern})$"))

    def plain(self, words: Words) -> Words:
        """Return numbers as programs write them.

        Example:
            >>> NumberFormat(",", ".", "trailing").plain(pa.array(["1.234,50-", "+7"])).to_pylist()
            ['-1234.50', '7']
        """
        if self.thousands is not None:
            words = pc.replace_substring_regex(words, GROUPS[self.thousands], "")
        if self.decimal != ".":
            words = pc.replace_substring(words, self.decimal, ".")
        if self.negative in _MINUS:
            words = pc.replace_substring_regex(words, _MINUS[self.negative], r"-\1")
        return pc.replace_substring_regex(words, r"^\+", "")


def numbers_of(options: CsvOptions) -> NumberFormat:
    """Return how the numbers of a file are written."""
    return NumberFormat(options.decimal, options.thousands, options.negative)


def reads_directly(name: str, type: Type, options: CsvOptions) -> bool:
    """Return whether Arrow's reader converts a column as its file is written.

    Args:
        name: the column.
        type: its Arrow type.
        options: how the file is written.
    """
    if options.trim:
        return False
    if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
        return options.thousands is None and options.negative == "minus"
    return options.format_of(name, str(type)) is None


def values_of(words: Words, name: str, type: Type, options: CsvOptions) -> Values:
    """Return a column of strings as one of its type.

    Args:
        words: the strings.
        name: the name of the column.
        type: its Arrow type.
        options: how the file is written.

    Raises:
        WrongValueError: one is not a value of that type.
    """
    is_string = pa.types.is_string(type)
    if options.trim or not is_string:
        words = pc.utf8_trim_whitespace(words)
    if options.trim and is_string and options.quote is not None:
        _check(words, pc.invert(pc.starts_with(words, options.quote)), _QUOTE_AFTER_BLANKS)
    if not is_string or options.missing_strings:
        words = without(words, options.missing)
    if is_string:
        return words
    return _converted(words, _conversion(name, type, options))


_QUOTE_AFTER_BLANKS = "a quote after blanks does not begin a quoted field"


def without(words: Words, missing: Collection[str]) -> Words:
    """Return strings with null in the place of words for it."""
    if not missing:
        return words
    is_missing = pc.is_in(words, pa.array(list(missing), pa.string()))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), words)


def all_true(mask: Values) -> bool:
    """Return whether a mask has no false; null is none."""
    return pc.all(mask).as_py() is not False


def _check(words: Words, mask: Values, why: str = "") -> None:
    if not all_true(mask):
        index = pc.index(mask, False).as_py()
        raise WrongValueError(index, words[index].as_py(), why)


Conversion = Callable[[Words], Values]


def _conversion(name: str, type: Type, options: CsvOptions) -> Conversion:
    format = options.format_of(name, str(type))
    if format is not None:
        return lambda words: dates_of(words, type, format)
    if pa.types.is_boolean(type):
        return lambda words: _bools(words, options)
    if pa.types.is_time(type):
        return lambda words: _times(words, type)
    if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
        return lambda words: _numbers(words, type, numbers_of(options))
    return lambda words: words.cast(type)


def _converted(words: Words, conversion: Conversion) -> Values:
    """Return converted strings; find the first one that fails.

    Raises:
        WrongValueError: one does.
    """
    try:
        return conversion(words)
    except pa.ArrowException:
        pass
    start, end = 0, len(words)  # which has the first failure within
    while end - start > 1:
        middle = (start + end) // 2
        try:
            conversion(words.slice(start, middle - start))
            start = middle
        except pa.ArrowException:
            end = middle
    try:
        conversion(words.slice(start, 1))
    except pa.ArrowException as error:
        raise WrongValueError(start, words[start].as_py()) from error
    raise AssertionError("a column fails, and none of its values")


def _numbers(words: Words, type: Type, numbers: NumberFormat) -> Values:
    _check(words, pc.match_substring_regex(words, f"^(?:{numbers.pattern})$"))
    return numbers.plain(words).cast(type)


def _bools(words: Words, options: CsvOptions) -> Values:
    is_true = pc.is_in(words, pa.array(options.true_words, pa.string()))
    is_false = pc.is_in(words, pa.array(options.false_words, pa.string()))
    _check(words, pc.or_(pc.or_(is_true, is_false), pc.is_null(words)))
    return pc.if_else(pc.is_null(words), pa.scalar(None, pa.bool_()), is_true)


def _times(words: Words, type: Type) -> Values:
    day = pc.binary_join_element_wise("1970-01-01", words, " ")
    return day.cast(pa.timestamp(type.unit)).cast(type)


def format_pattern(format: str) -> str:
    """Return the pattern of what is written in a format of dates."""
    return "".join(
        CODES[part] if is_code else re.escape(part) for part, is_code in format_codes(format)
    )


def dates_of(words: Words, type: Type, format: str) -> Values:
    """Return dates or timestamps of strings in a format.

    Raises:
        WrongValueError: one is none, such as 31.02.2024.
    """
    pattern = f"^(?:{format_pattern(format)})$"
    _check(words, pc.match_substring_regex(words, pattern), f"its format is {format}")
    zone = getattr(type, "tz", None)
    if zone is not None and len(words):
        _check(words, pc.is_null(words), "a time in a format has no zone")
    times = pc.strptime(words, format=format, unit="s")
    # it takes 31.02. for 02.03.
    days = pc.struct_field(pc.extract_regex(words, pattern), "day").cast(pa.int64())
    _check(words, pc.equal(pc.day(times), days), "there is no such day")
    return times.cast(type)
