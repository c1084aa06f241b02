"""CSV files: with a header, in UTF-8, read whole by the types of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core import BaseType
from mplang_data.description import SourceError
from mplang_data.sources.csv_errors import explained, head_of, header_problem, names_in
from mplang_data.sources.files import Files, mapped

QUOTE = ord('"')
_INFINITE = r"(?i)^\s*[-+]?inf(inity)?\s*$"


class CsvFiles(Files):
    """One or more CSV files with the same header.

    Fields are separated by commas and quoted by ``"``. An empty field of a number, a date or a bool
    is null, one of a string is the empty string. A blank line is no row.
    """

    def names(self, file: int) -> Sequence[str]:
        """Return the names in the header."""
        return names_in(head_of(mapped(file)))

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa  # type: ignore[import-untyped]
        from mplang_tables import arrow

        from mplang_data.columns import check_schema, reading, table_type

        kind = table_type(kind)
        wanted, found = arrow.schema(kind), []
        with reading():
            for file in files:
                data = mapped(file)
                names = names_in(head_of(data))
                if header_problem(data, wanted.names):
                    raise explained(data, kind)
                # its types are in the catalogue only
                known = [
                    (n, wanted.field(n).type if n in wanted.names else pa.null()) for n in names
                ]
                check_schema(pa.schema(known), kind)
                if np.count_nonzero(np.frombuffer(data, np.uint8) == QUOTE) % 2:
                    raise SourceError("a quote in it has no end")  # which would swallow rows
                try:
                    found.append(_read(data, wanted))
                except pa.ArrowException as error:
                    try:
                        _read(data, wanted, threads=False)
                    except pa.ArrowException as counted:
                        raise explained(data, kind, counted) from counted
                    raise explained(data, kind, error) from error
                _check_numbers(data, found[-1])
                if len(names) == 1:
                    _check_blank_lines(data, found[-1])
            return pa.concat_tables(found)


def _read(data: Any, wanted: Any, *, threads: bool = True, blank: bool = False) -> Any:
    """Read columns by their types.

    Args:
        data: the file.
        wanted: the Arrow schema of the columns.
        threads: whether to use several; without them errors count the rows.
        blank: whether a blank line is a row.
    """
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types=wanted, include_columns=wanted.names, null_values=[""],
        quoted_strings_can_be_null=False,
    )  # fmt: skip
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not blank)
    options = csv.ReadOptions(use_threads=threads)
    return csv.read_csv(pa.BufferReader(data), options, parse, convert)


def _check_numbers(data: Any, table: Any) -> None:
    """Check that no number is infinite which the file does not call so: Arrow goes beyond ranges.

    Raises:
        SourceError: one is beyond the range of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    for field, column in zip(table.schema, table.columns, strict=True):
        infinite = pa.types.is_floating(field.type) and pc.is_inf(column).fill_null(False)
        if not infinite or not pc.any(infinite).as_py():
            continue
        words = _read(data, pa.schema([(field.name, pa.string())])).column(0).filter(infinite)
        if not pc.all(pc.match_substring_regex(words, _INFINITE)).as_py():
            raise SourceError(
                "it has numbers that their types do not hold",
                detail=f"column {field.name!r} has numbers beyond the range of {field.type}",
            )


def _check_blank_lines(data: Any, table: Any) -> None:
    """Check that a file of one column has no blank lines: some programs write a null so.

    Raises:
        SourceError: it has some.
    """
    start = len(data) - len(data.to_pybytes().lstrip(b"\xef\xbb\xbf\r\n"))
    if _read(data.slice(start), table.schema, blank=True).num_rows != table.num_rows:
        raise SourceError(
            "it has one column and blank lines, which are nulls for some programs and nothing for "
            "others; remove them, or write a second column"
        )
