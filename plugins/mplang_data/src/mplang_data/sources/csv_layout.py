"""Detection of the layout of a CSV file: encoding, separator, quotes and header. Imports Arrow."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mplang_data.description import SourceError
from mplang_data.sources.csv_errors import SEPARATORS
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_text import HEAD, in_utf8, reader
from mplang_data.sources.csv_types import MISSING
from mplang_data.sources.csv_words import Buffer, Fields

_SAMPLE = 1000  # records
_SURE_SHARE = 0.8
_LEAST_SHARE = 0.5  # of the records that have as many fields, if there is a separator
_PRIORITY = "\t|;,"  # commas last: they are decimals and within texts
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16",
          b"\xfe\xff": "utf-16"}  # fmt: skip
_WESTERN = re.compile("[À-ÖØ-öø-ÿŠšŽžŒœŸ€„“”‚‘’–—…°§²³µ¿¡«»ªº£¥¢\u00a0®©™½¼¾±·•]")
_KANA = re.compile("[\u3041-\u30ff]")
_HALF_KANA = re.compile("[\uff61-\uff9f]")
_FOREIGN = re.compile("[^\x00-\x7f]+")
_LIKE_DATA = re.compile(r"[-+(]?\d[\d.,:/' \u00a0\u202f-]*[)%]?(?:[ T]?[\d:]+)?")


class Layout(NamedTuple):
    """Layout of a CSV file.

    Attributes:
        options: fields of :class:`CsvOptions` that are not as by default.
        reasons: what was found and why, as sentences.
        doubts: what may be otherwise, and what its owner says then.
    """

    options: dict[str, Any]
    reasons: list[str]
    doubts: list[str]


def layout_of(data: Buffer, known: Fields) -> Layout:
    """Return how a file is laid out.

    Args:
        data: the file, as an Arrow buffer.
        known: what its owner says of it, as fields of :class:`CsvOptions`.

    Raises:
        SourceError: it is laid out in no way that is read.
    """
    layout = Layout(dict(known), [], [])
    if "encoding" not in known:
        _find_encoding(data, layout)
    text = in_utf8(data, CsvOptions(encoding=layout.options.get("encoding", "utf-8")).encoding)
    head = text.slice(0, min(text.size, HEAD)).to_pybytes().decode(errors="replace")
    head = head.removeprefix("\ufeff")
    if text.size > HEAD:  # its last line is cut
        head = head[: head.rfind("\n") + 1]
    _find_quote(head, layout, known)
    _find_rows(head, layout, known)
    return layout


def _find_encoding(data: Buffer, layout: Layout) -> None:
    """Find out the encoding; not every one is told by its bytes."""
    options, reasons, doubts = layout
    start = data.slice(0, min(data.size, 4096)).to_pybytes()
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            options["encoding"] = encoding
            reasons.append(f"encoding {encoding}: it begins with its byte order mark")
            return
    odd, even = start[1::2].count(0), start[::2].count(0)
    if max(odd, even) > 0.2 * len(start) / 2 and (not odd or not even):
        options["encoding"] = encoding = "utf-16-le" if odd else "utf-16-be"
        reasons.append(f"encoding {encoding}: bytes of zero are between its characters")
        return
    if _decodes(data, "utf-8"):
        return
    sample = b"\n".join(
        line for line in data.to_pybytes().splitlines() if not line.isascii()
    )[:HEAD]  # fmt: skip
    for encoding, fits in _FITS.items():
        text = sample.decode(encoding, errors="replace")
        if "\ufffd" not in text[:-1] and fits(text) and _decodes(data, encoding):
            words = re.findall(r"\w*[^\x00-\x7f]\w*", text)
            options["encoding"] = encoding
            doubts.append(
                f"encoding {encoding}: it is not in UTF-8, and bytes do not tell the encoding; by "
                f"this one it says {words[0][:40]!r}: if that is wrong, say encoding"
            )
            return
    raise SourceError(
        "it is in none of UTF-8, UTF-16, cp1252 (Western offices) and cp932 (Japanese ones), as "
        "far as its bytes tell: say encoding, such as cp1250, cp1251, gb18030, euc-kr or big5"
    )


def _decodes(data: Buffer, encoding: str) -> bool:
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for start in range(0, data.size, HEAD):
            decoder.decode(data.slice(start, min(HEAD, data.size - start)).to_pybytes())
        decoder.decode(b"", True)
    except UnicodeError:
        return False
    return True


def _is_western(text: str) -> bool:
    """Return whether a text has letters of Western languages, most of them among ASCII ones."""
    runs = _FOREIGN.findall(text)
    alone = sum(len(run) == 1 for run in runs)
    return alone >= 0.8 * len(runs) and all(_WESTERN.fullmatch(c) for run in runs for c in run)


def _is_japanese(text: str) -> bool:
    """Return whether a text has Japanese words, and not what others' bytes look like."""
    runs = _FOREIGN.findall(text)
    if _KANA.search(text):
        return True
    halves = len(_HALF_KANA.findall(text))
    long = sum(len(run) > 1 for run in runs)
    return long >= 0.8 * len(runs) and halves < 0.3 * sum(map(len, runs))


_FITS: Mapping[str, Callable[[str], bool]] = {"cp1252": _is_western, "cp932": _is_japanese}


def _find_quote(head: str, layout: Layout, known: Fields) -> None:
    if "quote" in known or '"' in head:
        return
    separators = re.escape("".join(SEPARATORS))
    pattern = rf"(?m)(?:^|[{separators}])'[^'\r\n]*'(?=[{separators}]|\r?$)"
    if len(re.findall(pattern, head)) > head.count("'") / 4:
        layout.options["quote"] = "'"
        layout.reasons.append("quote ': fields are within single quotes")


class _Records(NamedTuple):
    """Records by one separator, but for blank ones.

    Attributes:
        separator: the separator.
        records: their fields, each with the line that it begins in.
        width: the number of fields that most of them have, which is above one.
        share: the share of those that have so many; 0 if none has more than one.
    """

    separator: str
    records: Sequence[tuple[int, Sequence[str]]]
    width: int
    share: float


def _records(head: str, separator: str, quote: str | None) -> _Records:
    lines = io.StringIO(head, newline="")
    rows, records, line = reader(lines, separator, quote), [], 0
    try:
        for fields in rows:
            if fields:
                records.append((line, fields))
            line = rows.line_num  # type: ignore[attr-defined]
            if len(records) == _SAMPLE:
                break
    except csv.Error as error:
        raise SourceError("it has a field of more than 128 KiB in its beginning") from error
    counts = Counter(len(fields) for _, fields in records if len(fields) > 1)
    width = max(counts, key=lambda width: (counts[width], width), default=1)
    return _Records(separator, records, width, counts[width] / max(1, len(records)))


def _find_rows(head: str, layout: Layout, known: Fields) -> None:
    """Find out separator, header and what is not a row."""
    options, reasons, doubts = layout
    lines = head.splitlines(keepends=True)
    skipped = known.get("skip", 0)
    declared = re.match(r"sep=(.)\r?\n", head)
    separators = [known["separator"]] if "separator" in known else list(_PRIORITY)
    if declared and "skip" not in known:
        skipped, options["skip"] = 1, 1
        reasons.append("skip 1: its first line is not a row")
        if "separator" not in known:
            separators = [declared[1]]
        reasons.append(f"separator {declared[1]!r}: its first line says so, as Excel writes it")
    head, quote = "".join(lines[skipped:]), options.get("quote", '"')
    tried = [_records(head, each, quote) for each in separators]
    best = max(tried, key=lambda each: round(each.share, 2))  # the first one of equals
    if not best.records:
        raise SourceError("it has no header and no rows")
    if best.share < _LEAST_SHARE:
        if best.share:
            doubts.append(
                f"one column: {best.share:.0%} of its lines have {best.width} fields by "
                f"{best.separator!r}; if that is the separator, say it, and how many lines to skip"
            )
        best = _Records(known.get("separator", ","), best.records, 1, 0.0)
    elif len(tried) > 1:
        reasons.append(
            f"separator {best.separator!r}: {best.share:.0%} of its lines have {best.width} fields"
        )
        rivals = [each for each in tried if each.share == best.share and each is not best]
        if rivals:
            doubts.append(
                f"separator {best.separator!r}: by {rivals[0].separator!r} its lines have "
                f"{rivals[0].width} fields; say separator if that is it"
            )
    if best.separator != ",":
        options["separator"] = best.separator
    _find_header(best, layout, known, skipped)


def _find_header(rows: _Records, layout: Layout, known: Fields, skipped: int) -> None:
    options, reasons, doubts = layout
    width, records = rows.width, list(rows.records)
    comments = [i for i, (_, fields) in enumerate(records) if fields[0].startswith("#")]
    if "comment" not in known and any(len(records[i][1]) != width for i in comments):
        options["comment"] = "#"
        reasons.append("comment #: lines that begin with it have other fields than the rows")
    if options.get("comment"):
        records = [each for each in records if not each[1][0].startswith(options["comment"])]
    first = _first_row(records, width)
    if first and _ends_with_separator(records, first, width):
        first -= 1
        if "trailing_separator" not in known:
            options["trailing_separator"] = True
            reasons.append("trailing_separator: each row ends with one, and the header does not")
    elif first and len(records[first - 1][1]) == width - 1 and width > 2:
        raise SourceError(
            f"its header has {width - 1} names, and rows have {width} fields: name them all"
        )
    else:
        names = (i for i, (_, fields) in enumerate(records) if _may_be_names(fields, width))
        first = next(names, first)
    if not options.get("names"):
        _find_names([fields for _, fields in records[first:]], layout)
    if first and "skip" not in known:
        options["skip"] = skip = records[first][0] + skipped
        sentence = f"skip {skip}: the lines before the header have fewer fields, or empty ones"
        if rows.share < _SURE_SHARE or "names" in options:
            doubts.append(f"{sentence}; if they are rows, say separator, and skip: {skipped}")
        else:
            reasons.append(sentence)


def _first_row(records: Sequence[tuple[int, Sequence[str]]], width: int) -> int:
    return next((i for i, (_, fields) in enumerate(records) if len(fields) == width), 0)


def _may_be_names(fields: Sequence[str], width: int) -> bool:
    """Return whether a record may be a header: Excel pads titles with empty fields."""
    filled = sum(field.strip() != "" for field in fields)
    return len(fields) == width and (filled > width / 2 or (filled > 0 and not fields[0]))


def _ends_with_separator(
    records: Sequence[tuple[int, Sequence[str]]], first: int, width: int
) -> bool:
    rows = [fields for _, fields in records[first:] if len(fields) == width]
    return len(records[first - 1][1]) == width - 1 and not any(fields[-1] for fields in rows)


def _find_names(records: Sequence[Sequence[str]], layout: Layout) -> None:
    """Find out whether there is a header, by fields in it that are written as data are."""
    header, rows = records[0], records[1:]
    if any(name != name.strip() for name in header) and "trim" not in layout.options:
        layout.options["trim"] = True
        layout.reasons.append("trim: there are blanks around the names in its header")
    numbers = [
        i
        for i in range(len(header))
        if (fields := [row[i] for row in rows if i < len(row) and row[i]])
        and all(map(_is_like_data, fields))
    ]
    data = [i for i in numbers if _is_like_data(header[i])]
    if not data:
        if not numbers:
            layout.reasons.append("header: its first line is taken for names (else say names)")
        return
    years = [re.fullmatch("(?:19|20)[0-9]{2}", header[i]) for i in data]
    if len(data) == len(numbers) and not all(years):
        names = [f"column_{i + 1}" for i in range(len(header))]
        layout.options["names"] = names
        layout.doubts.append(
            "names: its first line is written as a row, so it is taken for one, and not for names"
        )
    else:
        layout.doubts.append(
            "header: its first line has numbers, and is taken for names; if it is a row, say names"
        )


def _is_like_data(field: str) -> bool:
    return field.strip() in MISSING[1:] or _LIKE_DATA.fullmatch(field.strip()) is not None
