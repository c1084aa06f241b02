"""CSV files: read whole, by the types of the catalogue and as it says that they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mplang_core import BaseType, TableType
from mplang_data.description import SourceError
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_words import Buffer, Fields, Schema, Table
from mplang_data.sources.files import Files, mapped

if TYPE_CHECKING:  # it imports Arrow
    from mplang_data.sources.csv_text import Text

_WRITTEN_FOR_PROGRAMS: Fields = {}


class CsvFiles(Files):
    """One or more CSV files with the same header.

    By default fields are separated by commas and quoted by ``"``. An empty field of a number, a
    date or a bool is null, one of a string is the empty string. A blank line is not a row. Options
    tell what is written in another way; see :class:`CsvOptions`.
    """

    def names(self, file: int, *, options: Fields = _WRITTEN_FOR_PROGRAMS) -> Sequence[str]:
        """Return the names in the header."""
        from mplang_data.sources.csv_text import text_of

        return text_of(mapped(file), CsvOptions(**options)).names

    def probe(
        self,
        files: Sequence[int],
        kind: BaseType,
        match: Sequence[str] = (),
        *,
        options: Fields = _WRITTEN_FOR_PROGRAMS,
    ) -> int | None:
        """Read the files; see :class:`mplang_data.Source`."""
        from mplang_data.columns import check_there

        for file in files if match else ():
            check_there(match, self.names(file, options=options))
        return getattr(self.read(files, kind, options=options), "num_rows", None)

    def read(
        self, files: Sequence[int], kind: BaseType, *, options: Fields = _WRITTEN_FOR_PROGRAMS
    ) -> Table:
        """Read the files; see :class:`mplang_data.Source`.

        Args:
            files: descriptors of open files.
            kind: the columns that are read.
            options: fields of :class:`CsvOptions`.
        """
        import pyarrow as pa  # type: ignore[import-untyped]

        from mplang_data.columns import reading, table_type

        kind, written = table_type(kind), CsvOptions(**options)
        with reading():
            return pa.concat_tables(_table(mapped(file), kind, written) for file in files)


def _table(data: Buffer, kind: TableType, options: CsvOptions) -> Table:
    import pyarrow as pa
    from mplang_tables import arrow

    from mplang_data.columns import check_schema
    from mplang_data.sources.csv_errors import explained, explained_value, header_problem
    from mplang_data.sources.csv_quotes import check_quotes
    from mplang_data.sources.csv_text import text_of
    from mplang_data.sources.csv_values import WrongValueError, reads_directly, values_of

    text, wanted = text_of(data, options), arrow.schema(kind)
    if header_problem(text, options, wanted.names):
        raise explained(text, kind, options)
    # its types are in the catalogue only
    known = [(n, wanted.field(n).type if n in wanted.names else pa.null()) for n in text.names]
    check_schema(pa.schema(known), kind)
    check_quotes(text.rows, options)
    types = pa.schema(
        (n, t if reads_directly(n, t, options) else pa.string())
        for n, t in zip(wanted.names, wanted.types, strict=True)
    )
    try:
        words = parsed(text, types, options)
    except pa.ArrowException as error:
        try:
            parsed(text, types, options, threads=False)
        except pa.ArrowException as counted:
            raise explained(text, kind, options, counted) from counted
        raise explained(text, kind, options, error) from error
    columns = []
    for name, type in zip(wanted.names, wanted.types, strict=True):
        column = words.column(name)
        if not reads_directly(name, type, options):
            try:
                column = values_of(column, name, type, options)
            except WrongValueError as error:
                row = text.before + error.index + 1
                raise explained_value(
                    row, name, dict(kind.columns)[name], error, options
                ) from error
        columns.append(column)
    made = pa.table(columns, schema=wanted)
    _check_infinities(text, made, options)
    _check_ends(text, options)
    if len(text.names) == 1 and options.blank_lines is None:
        _check_blank_lines(text, made.num_rows, options)
    return made


def parsed(
    text: Text, types: Schema, options: CsvOptions, *, threads: bool = True, blank: bool = False
) -> Table:
    """Parse columns by Arrow's reader.

    Args:
        text: the rows and the names.
        types: the Arrow schema of the columns.
        options: how the file is written.
        threads: whether to use several; without them errors count the rows.
        blank: whether a blank line is a row, whatever the options say.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not text.rows.size:
        return types.empty_table()
    convert = csv.ConvertOptions(
        column_types=types, include_columns=types.names, null_values=options.missing,
        strings_can_be_null=options.missing_strings, decimal_point=options.decimal,
        true_values=options.true_words, false_values=options.false_words,
    )  # fmt: skip
    parse = csv.ParseOptions(
        delimiter=options.separator, quote_char=options.quote or False,
        newlines_in_values=options.quote is not None,
        ignore_empty_lines=not blank and options.blank_lines != "missing",
    )  # fmt: skip
    read = csv.ReadOptions(use_threads=threads, column_names=text.names)
    return csv.read_csv(pa.BufferReader(text.rows), read, parse, convert)


def _check_infinities(text: Text, table: Table, options: CsvOptions) -> None:
    """Check that no number is infinite which the file does not call so: Arrow goes beyond ranges.

    Raises:
        SourceError: one is beyond the range of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    from mplang_data.sources.csv_values import INFINITE

    for field, column in zip(table.schema, table.columns, strict=True):
        infinite = pa.types.is_floating(field.type) and pc.is_inf(column).fill_null(False)
        if not infinite or not pc.any(infinite).as_py():
            continue
        words = parsed(text, pa.schema([(field.name, pa.string())]), options).column(0)
        if not pc.all(pc.match_substring_regex(words.filter(infinite), INFINITE)).as_py():
            raise SourceError(
                "it has numbers that their types do not hold",
                detail=f"column {field.name!r} has numbers beyond the range of {field.type}",
            )


def _check_ends(text: Text, options: CsvOptions) -> None:
    """Check that nothing is behind the separators that end rows.

    Raises:
        SourceError: something is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from mplang_data.sources.csv_text import WRONG

    if options.trailing_separator:
        ends = parsed(text, pa.schema([("", pa.string())]), options).column(0)
        if pc.any(pc.not_equal(pc.utf8_trim_whitespace(ends), "")).as_py():
            raise SourceError(WRONG, detail="a row has more fields than the header has names")


def _check_blank_lines(text: Text, rows: int, options: CsvOptions) -> None:
    """Check that a file of one column has no blank lines: some programs write a null so.

    Raises:
        SourceError: it has some.
    """
    import pyarrow as pa

    types = pa.schema([(text.names[0], pa.string())])
    if parsed(text, types, options, blank=True).num_rows != rows:
        raise SourceError(
            "it has one column and blank lines, which are nulls for some programs and nothing for "
            "others: say blank_lines: skip, or blank_lines: missing, of its csv in the catalogue"
        )
