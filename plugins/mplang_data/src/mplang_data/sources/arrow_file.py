"""Arrow IPC files (Feather version 2): mapped, and not copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core import BaseType
from mplang_data.sources.files import Files, mapped


class ArrowFiles(Files):
    """One or more Arrow IPC files with the same columns."""

    def names(self, file: int) -> Sequence[str]:
        """Return the names of its schema."""
        import pyarrow as pa  # type: ignore[import-untyped]

        from mplang_data.columns import reading

        with reading(), pa.ipc.open_file(pa.BufferReader(mapped(file))) as reader:
            found: list[str] = reader.schema.names
            return found

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read the files; see :class:`mplang_data.Source`."""
        import pyarrow as pa
        from mplang_tables import arrow

        from mplang_data.columns import check_schema, reading, table_type

        wanted = table_type(kind)
        names = [name for name, _ in wanted.columns]
        found = []
        with reading():
            for file in files:
                with pa.ipc.open_file(pa.BufferReader(mapped(file))) as reader:
                    check_schema(reader.schema, wanted)
                    table = reader.read_all().select(names)
                    table.validate(full=True)
                    found.append(arrow.plain(table))
            return pa.concat_tables(found)
