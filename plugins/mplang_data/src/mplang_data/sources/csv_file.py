"""CSV files: with a header, in UTF-8, read whole by the types of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core import BaseType
from mplang_data.description import SourceError
from mplang_data.sources.files import Files, mapped

QUOTE = ord('"')


class CsvFiles(Files):
    """One or more CSV files with the same header.

    Fields are separated by commas and quoted by ``"``. An empty field of a number, a date or a bool
    is null, one of a string is the empty string.
    """

    def names(self, file: int) -> Sequence[str]:
        """Return the names in the header."""
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import csv

        from mplang_data.columns import reading

        with reading():
            parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
            found: list[str] = csv.open_csv(
                pa.BufferReader(mapped(file)), parse_options=parse
            ).schema.names
            return found

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa
        from mplang_tables import arrow
        from pyarrow import csv

        from mplang_data.columns import check_schema, reading, table_type

        wanted = arrow.schema(table_type(kind))
        convert = csv.ConvertOptions(
            column_types=wanted, include_columns=wanted.names, null_values=[""],
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        found = []
        with reading():
            for file in files:
                data = mapped(file)
                if np.count_nonzero(np.frombuffer(data, np.uint8) == QUOTE) % 2:
                    raise SourceError("a quote in it has no end")  # which would swallow rows
                names = csv.open_csv(pa.BufferReader(data), parse_options=parse).schema.names
                # its types are in the catalogue only
                known = [
                    (n, wanted.field(n).type if n in wanted.names else pa.null()) for n in names
                ]
                check_schema(pa.schema(known), table_type(kind))
                rows = pa.BufferReader(data)
                found.append(csv.read_csv(rows, parse_options=parse, convert_options=convert))
            return pa.concat_tables(found)
