"""Tables written as offices may: none is read wrong, unless that it may be so is said."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import random
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from mplang_data.schema import propose

from mplang_core.errors import ConfigError

LETTERS = {
    "utf-8": "äß€Ł日",
    "utf-8-sig": "é",
    "cp1252": "äöü",
    "utf-16": "日Łä",
    "cp932": "日本カ",
}
SEEDS = range(40)


class Habits(NamedTuple):
    """How an office writes."""

    separator: str
    encoding: str
    decimal: str
    thousands: str
    negative: str
    missing: str
    format: str
    bools: tuple[str, str]
    quoting: int
    titles: list[str]
    newline: str
    end: str
    blank: float


def habits(rng):
    decimal = rng.choice(".,")
    return Habits(
        rng.choice(",;\t|"), rng.choice([*LETTERS]), decimal,
        rng.choice([each for each in ("", "", ",", ".", "'", " ") if each != decimal]),
        rng.choice(["-{}", "-{}", "{}-", "({})"]), rng.choice(["", "NA", "-", "n.a.", "NULL"]),
        rng.choice(["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"]),
        rng.choice([("true", "false"), ("ja", "nein"), ("Y", "N")]),
        rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), rng.choice([[], [], ["Report"], ["R", ""]]),
        rng.choice(["\n", "\r\n"]), rng.choice(["", "", "", "end"]), rng.choice([0, 0, 0.2]),
    )  # fmt: skip


def table(rng, letters):
    rows = rng.choice([3, 30, 200])

    def text():
        word = "".join(rng.choice("abcdef") for _ in range(rng.randint(2, 8)))
        ends = ("", "", "", ", x", "; y", ' "q"', "\nline", "|z", "\t.")
        begin = letters[-2:] if "日" in letters else f"Z{letters[0]}"
        return begin + word + rng.choice(ends)

    def perhaps(make):
        return [None if rng.random() < 0.1 else make() for _ in range(rows)]

    columns = {
        "id": [rng.randint(0, 10 ** rng.randint(1, 12)) for _ in range(rows)],
        "pay": perhaps(lambda: Decimal(rng.randint(-(10**7), 10**7)).scaleb(-2)),
        "name": [text() for _ in range(rows)],
        "day": perhaps(lambda: dt.date(1950, 1, 1) + dt.timedelta(rng.randint(0, 30000))),
        "ok": [rng.random() < 0.5 for _ in range(rows)],
    }
    return {name: columns[name] for name in rng.sample([*columns], len(columns))}


def field(value, office):
    match value:
        case None:
            return office.missing
        case bool():
            return office.bools[0 if value else 1]
        case dt.date():
            return value.strftime(office.format)
        case int() | Decimal():
            whole, _, rest = f"{abs(value):,}".partition(".")
            text = whole.replace(",", office.thousands) + (office.decimal + rest if rest else "")
            return office.negative.format(text) if value < 0 else text
    return value


def written(columns, office, rng):
    text = io.StringIO(newline="")
    text.writelines(line + office.newline for line in office.titles)
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    for number, row in enumerate(rows):
        line = io.StringIO(newline="")
        cells = row if number == 0 else [field(value, office) for value in row]
        csv.writer(line, delimiter=office.separator, quoting=office.quoting).writerow(cells)
        end = office.separator if office.end and number else ""
        text.write(line.getvalue().removesuffix("\r\n") + end + office.newline)
        text.write(office.newline if rng.random() < office.blank else "")
    return text.getvalue().encode(office.encoding)


def wrong(columns, data_set, doubts) -> dict[str, Any]:
    """Return the columns that are read as others, and are not said to be so."""
    opened = data_set.open()
    read = opened.read(data_set.type).to_pydict()
    opened.close()
    found = {}
    for name, values in columns.items():
        said = any(f"column {name!r}" in doubt for doubt in doubts)
        if name == "name":
            said = said or any(doubt.startswith("encoding") for doubt in doubts)
        if data_set.columns.get(name) == "double":
            values = [None if value is None else float(value) for value in values]
        said = said or (name == "ok" and len(set(values)) == 1)  # one word alone is not a bool
        if read.get(name) != values and not said:
            found[name] = (read.get(name), values)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_is_read_as_it_was_or_doubted_or_refused(tmp_path, seed):
    rng = random.Random(seed)
    office = habits(rng)
    columns = table(rng, LETTERS[office.encoding])
    try:
        content = written(columns, office, rng)
    except UnicodeEncodeError:
        pytest.skip("these letters are none of the encoding")
    (tmp_path / "x.csv").write_bytes(content)
    source = f"csv:{tmp_path}/x.csv"
    if len(columns["id"]) == 3 and office.titles:  # so few rows may not tell the separator
        with contextlib.suppress(ConfigError):
            propose(source, "/")
        return
    data_set, reasons, doubts = propose(source, "/")
    assert not wrong(columns, data_set, doubts), (office, reasons, doubts)
