"""Parquet files: read when they are used, the columns and rows that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core import BaseType
from mplang_data.sources.files import Files, mapped


class ParquetFiles(Files):
    """One or more Parquet files with the same columns."""

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Return a scan of the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.dataset as ds  # type: ignore[import-untyped]
        from mplang_tables.scan import Scan

        from mplang_data.sources.tables import check_schema, reading, table_type

        wanted, parts = table_type(kind), ds.ParquetFileFormat()
        with reading():
            fragments = [parts.make_fragment(pa.BufferReader(mapped(file))) for file in files]
            for fragment in fragments:
                check_schema(fragment.physical_schema, wanted)
            rows = sum(fragment.metadata.num_rows for fragment in fragments)
            schema = pa.schema(
                [fragments[0].physical_schema.field(name) for name, _ in wanted.columns]
            ).remove_metadata()
            return Scan(wanted, ds.FileSystemDataset(fragments, schema, parts), rows)
