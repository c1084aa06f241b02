"""Parquet files: read when they are used, the columns and rows that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mplang_core import BaseType, TableType
from mplang_data.description import SourceError
from mplang_data.sources.files import Files, mapped

_OF_ARROW = {"__filename", "__fragment_index", "__batch_index", "__last_in_fragment"}
BATCH = 64 << 10  # rows


class ParquetFiles(Files):
    """One or more Parquet files with the same columns."""

    def names(self, file: int) -> Sequence[str]:
        """Return the names of its schema."""
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        from mplang_data.columns import reading

        with reading():
            found: list[str] = pq.read_schema(pa.BufferReader(mapped(file))).names
            return found

    def paths(self, where: str, files: Sequence[int]) -> list[str]:
        """Return the paths of what is open, as DuckDB reads it; see :class:`mplang_data.Source`."""
        return [f"/proc/self/fd/{file}" for file in files]

    def relation(self, con: Any, where: str, files: Sequence[int], kind: TableType) -> str | None:
        """Return a reading of the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from mplang_tables.ext import quoted_text

        from mplang_data.columns import check_schema, reading

        for file in files:
            with reading(), pq.ParquetFile(pa.BufferReader(mapped(file))) as opened:
                if any(column.physical_type == "INT96" for column in opened.schema):
                    return None  # whose unit is found by its values
                check_schema(opened.schema_arrow, kind)
        paths = ", ".join(map(quoted_text, self.paths(where, files)))
        # without can_have_nan, whole groups of rows with NaN are left out by their statistics
        return f"read_parquet([{paths}], can_have_nan = true, hive_partitioning = false)"

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Return a scan of the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa
        import pyarrow.dataset as ds  # type: ignore[import-untyped]
        import pyarrow.parquet as pq
        from mplang_tables.ext import Scan

        from mplang_data.columns import check_schema, reading, table_type
        from mplang_data.sources.int96 import unit_of_int96

        wanted, buffers = table_type(kind), [mapped(file) for file in files]
        names = [name for name, _ in wanted.columns]
        if not _OF_ARROW.isdisjoint(names):
            raise SourceError(f"a column is called as one of Arrow's own: {sorted(_OF_ARROW)}")
        with reading():
            times = {"coerce_int96_timestamp_unit": unit_of_int96(buffers, wanted)}
        # it is mapped: to read ahead takes memory, and no time off
        form = ds.ParquetFileFormat(
            read_options=ds.ParquetReadOptions(**times),
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
        )

        def batches() -> Iterator[Any]:
            for buffer in buffers:
                with pq.ParquetFile(pa.BufferReader(buffer), pre_buffer=False, **times) as file:
                    for batch in file.iter_batches(BATCH, columns=names):
                        yield batch.select(names)

        with reading():
            fragments = [form.make_fragment(pa.BufferReader(buffer)) for buffer in buffers]
            for fragment in fragments:
                check_schema(fragment.physical_schema, wanted)
            rows = sum(fragment.metadata.num_rows for fragment in fragments)
            schema = fragments[0].physical_schema
            schema = pa.schema([schema.field(name) for name in names]).remove_metadata()
            return Scan(wanted, ds.FileSystemDataset(fragments, schema, form), batches, rows)
