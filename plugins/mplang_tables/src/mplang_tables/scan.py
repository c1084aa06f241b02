"""Tables that are read from their source when they are used. Imports no Arrow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mplang_core import MPLangError, TableType
from mplang_core.ext import KernelError

log = logging.getLogger("mplang.data")


class Scan:
    """Table that is read from its source when it is used: the columns and rows that are asked for.

    Ops take it as they take a ``pyarrow.Table``. SQL engines scan :attr:`dataset`, so that filters
    and columns are pushed down to the source.

    Args:
        kind: its type.
        dataset: a ``pyarrow.dataset.Dataset`` with these columns only, where categories may stand
            for their values.
        batches: returns its record batches in order, with columns as in ``dataset``, and reads few
            of them ahead.
        rows: its number of rows, as the source says.

    Attributes:
        name: what it is called in errors.
        num_rows: that number of rows.
        nbytes: 0, as its memory is the source's.
    """

    nbytes = 0

    def __init__(
        self, kind: TableType, dataset: Any, batches: Callable[[], Iterable[Any]], rows: int
    ) -> None:
        self.kind = kind
        self.name = "a table"
        self.num_rows = rows
        self._dataset = dataset
        self._batches = batches
        self._checked: list[str] = []
        self._check: Callable[[Any], None] | None = None
        self._convert: Callable[[Any], Any] | None = None

    def check_by(self, columns: Sequence[str], check: Callable[[Any], None]) -> None:
        """Register a check of its rows, to run before they are used.

        Args:
            columns: the columns that are checked.
            check: takes a ``pyarrow.Table`` with these columns, and raises an error that tells
                what is wrong.
        """
        self._checked, self._check = list(columns), check

    def convert_by(self, convert: Callable[[Any], Any]) -> None:
        """Register a conversion of its rows, to run before their checks.

        Args:
            convert: takes a ``pyarrow.Table`` of its type, and returns another one.
        """
        self._convert = convert

    @property
    def dataset(self) -> Any:
        """A ``pyarrow.dataset.Dataset`` with these columns only.

        Categories may stand for their values. Columns that are to be checked are read for it, once.
        If rows are to be converted, it is one in memory.

        Raises:
            KernelError: the source is damaged, or the check fails.
        """
        if self._convert is not None:
            import pyarrow.dataset as ds  # type: ignore[import-untyped]

            return ds.InMemoryDataset(self.to_table())
        if self._checked and self._check is not None:
            import pyarrow as pa

            from mplang_tables import arrow

            with self.reading():
                batches = self._dataset.to_batches(
                    columns=self._checked, batch_readahead=1, fragment_readahead=1
                )
                for batch in batches:
                    self._check(arrow.plain(pa.Table.from_batches([batch])))
            self._checked = []
        return self._dataset

    @property
    def schema(self) -> Any:
        """The Arrow schema of its tables."""
        from mplang_tables import arrow

        return arrow.schema(self.kind)

    @property
    def column_names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.kind.columns]

    def tables(self) -> Iterator[Any]:
        """Yield it in parts, each a ``pyarrow.Table`` of its type.

        Raises:
            KernelError: the source is damaged.
        """
        import pyarrow as pa

        from mplang_tables import arrow

        with self.reading():
            for batch in self._batches():
                yield self._ready(arrow.plain(pa.Table.from_batches([batch])))

    def to_table(self) -> Any:
        """Read all of it.

        Raises:
            KernelError: the source is damaged.
        """
        from mplang_tables import arrow

        with self.reading():
            return self._ready(arrow.plain(self._dataset.to_table()))

    def _ready(self, part: Any) -> Any:
        """Return rows of its type, converted and checked."""
        part = part.cast(self.schema)
        if self._convert is not None:
            part = self._convert(part)
        if self._check is not None:
            self._check(part)
        return part

    __mplang_fetch__ = to_table

    @contextmanager
    def reading(self, name: str | None = None) -> Iterator[None]:
        """Turn what a source raises that is damaged into an error with its name.

        Args:
            name: what it is called, with others that it may have been.

        Raises:
            KernelError: it is damaged; its owner's log tells which one it is.
        """
        try:
            yield
        except MPLangError:
            raise
        except Exception as error:  # of whatever reads it
            why = " ".join(str(error).split())[:300]  # stays at the party, as of each kernel
            log.error("%s is damaged: %s", name or self.name, why)
            raise KernelError(f"{name or self.name} is damaged: {why}", code="R011") from error


def loaded(table: Any) -> Any:
    """Return a table that is in memory: a scan is read."""
    return table.to_table() if isinstance(table, Scan) else table
