"""Options of CSV sources: how the office that wrote a file writes rows, numbers and dates."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from mplang_core.ext import StrictModel

CODES = {
    "d": r"(?P<day>\d{1,2})", "m": r"\d{1,2}", "Y": r"\d{4}", "y": r"\d{2}", "b": "[A-Za-z]{3}",
    "H": r"\d{1,2}", "I": r"\d{1,2}", "M": r"[0-5]\d", "S": r"[0-5]\d", "p": "(?i:[AP]M)",
}  # fmt: skip
"""Codes of formats of dates, each with the pattern of what is read by it."""

_NO_CHARACTERS = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}


def _one_byte(sign: str) -> str:
    if len(sign) != 1 or not sign.isascii() or sign in "\r\n\0":
        raise ValueError(f"expected one ASCII character, got {sign!r}")
    return sign


def _encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        is_text = isinstance("a".encode(name), bytes) and codec.name not in _NO_CHARACTERS
    except (LookupError, UnicodeError, ValueError):
        is_text = False
    if not is_text:
        raise ValueError(
            f"{name[:40]!r} is not an encoding, such as utf-8, utf-16, cp1252 or cp932"
        )
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def format_codes(format: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a format of dates: each with whether it is a code.

    Example:
        >>> list(format_codes("%d.%m"))
        [('d', True), ('.', False), ('m', True)]
    """
    for part in re.finditer("%(.?)|([^%]+)", format, re.DOTALL):
        yield (part[2], False) if part[2] is not None else (part[1], True)


def _format(format: str) -> str:
    codes = [part for part, is_code in format_codes(format) if is_code]
    wrong = [f"%{code}" for code in codes if code not in CODES]
    if wrong:
        known = " ".join(f"%{code}" for code in CODES)
        raise ValueError(f"{wrong[0]} is not a code of a format; there are {known}")
    for parts in ("d", "mb", "yY"):
        if sum(code in parts for code in codes) != 1:
            raise ValueError("a format has a day, a month and a year, such as %d.%m.%Y")
    if len(codes) != len(set(codes)) or ("I" in codes) != ("p" in codes):
        raise ValueError("a format has each code once, and %I with %p")
    return format


_Sign: TypeAlias = Annotated[str, AfterValidator(_one_byte)]
_Format: TypeAlias = Annotated[str, AfterValidator(_format)]


class CsvOptions(StrictModel):
    """Format of a CSV file, where it differs from what programs write.

    Attributes:
        separator: the character between fields.
        quote: the character around fields, doubled within them; ``None`` for none.
        encoding: the encoding, as Python calls it.
        skip: lines before the header that are not rows.
        comment: the character that begins lines which are not rows.
        names: the columns of a file without a header.
        trailing_separator: whether rows end with a separator, and the header does not.
        blank_lines: whether they are not rows (``skip``), or missing values (``missing``) of a file
            of one column; by default they are not rows, and refused in a file of one column.
        trim: whether blanks around names and fields are left out.
        missing: words for a missing value: in columns of numbers, dates and bools.
        missing_strings: whether they stand for one in columns of strings, too.
        decimal: the character before the decimals.
        thousands: the character between groups of digits. A blank stands for no-break ones, too.
        negative: whether a minus sign is before a number, or perhaps behind it (``trailing``), or
            parentheses around it stand for one.
        dates: the format of dates, such as ``%d.%m.%Y``, or formats by column; ISO by default.
        timestamps: the format of dates with a time, such as ``%d.%m.%Y %H:%M``, or by column.
        true_words: words for true.
        false_words: words for false.

    Example:
        >>> CsvOptions(separator=";", decimal=",", thousands=".", encoding="latin1").encoding
        'iso8859-1'
        >>> CsvOptions(decimal=",", thousands=",")
        Traceback (most recent call last):
        mplang_core.errors.ConfigError: ... decimal and thousands are the same, ','...
    """

    separator: _Sign = ","
    quote: _Sign | None = '"'
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"
    skip: int = Field(default=0, ge=0, le=10_000, strict=True)
    comment: _Sign | None = None
    names: tuple[str, ...] = ()
    trailing_separator: bool = False
    blank_lines: Literal["skip", "missing"] | None = None
    trim: bool = False
    missing: tuple[str, ...] = ("",)
    missing_strings: bool = False
    decimal: Literal[".", ","] = "."
    thousands: Literal[",", ".", " ", "'"] | None = None
    negative: Literal["minus", "trailing", "parentheses"] = "minus"
    dates: _Format | dict[str, _Format] | None = None
    timestamps: _Format | dict[str, _Format] | None = None
    true_words: tuple[str, ...] = ("true", "True", "TRUE", "1")
    false_words: tuple[str, ...] = ("false", "False", "FALSE", "0")

    @model_validator(mode="after")
    def _check(self) -> CsvOptions:
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are the same, {self.decimal!r}")
        signs = [each for each in (self.separator, self.quote, self.comment) if each is not None]
        if len(set(signs)) != len(signs):
            raise ValueError("separator, quote and comment are three characters")
        both = sorted({*self.true_words} & {*self.false_words})
        if both:
            raise ValueError(f"{both[0]!r} is a word for true, and one for false")
        if len(set(self.names)) != len(self.names) or "" in self.names:
            raise ValueError("names are those of all columns of the file, each once")
        return self

    def format_of(self, column: str, type: str) -> str | None:
        """Return the format of a column of dates or timestamps; ``None`` for ISO and other types.

        Example:
            >>> CsvOptions(dates={"born": "%d.%m.%Y"}).format_of("born", "date32[day]")
            '%d.%m.%Y'
        """
        formats = self.dates if type.startswith("date") else None
        formats = self.timestamps if type.startswith("timestamp") else formats
        return formats.get(column) if isinstance(formats, dict) else formats
