"""What kinds of sources promise: what is stored is read, or an error of ours tells why not."""

from __future__ import annotations

import gc
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import mplang_core as mp
from mplang_core import BaseType, TableType, TensorType
from mplang_testing.suite import Suite, complain
from mplang_testing.waiting import wait_until


class SourceSuite(Suite, kit=True):
    """A kind of source gives what is stored, in the type that is asked for.

    Attributes:
        kind: its name in the group ``mplang.sources``.
        data: what is stored: an array, or a table of at least two columns: of Arrow, or its columns
            by name, each with its type and its cells.

    Example::

        class TestCsv(SourceSuite):
            kind = "csv"
            data = {"age": ("int64", [1, None]), "name": ("string", ["a", "b"])}

            def store(self, folder, data):
                data.to_pandas().to_csv(folder / "a.csv", index=False)
                return "a.csv"
    """

    kind: ClassVar[str]
    data: ClassVar[Any]

    @abstractmethod
    def store(self, folder: Path, data: Any) -> str:
        """Store data in a new source.

        Args:
            folder: an empty folder.
            data: an array, or a ``pyarrow.Table``.

        Returns:
            Its place, relative to the folder.
        """

    def damage(self, folder: Path) -> None:
        """Damage what :meth:`store` stored, so that it cannot be read; by default its files."""
        for path in folder.iterdir():
            path.write_bytes(b"\0" + os.urandom(32))

    def remove(self, folder: Path) -> None:
        """Remove what :meth:`store` stored; by default its files."""
        for path in folder.iterdir():
            path.unlink()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        """Return the place of what is stored, for :meth:`mplang_data.Source.open`."""
        return str(self._source.place(self.store(tmp_path, self._value), str(tmp_path)))

    @property
    def _source(self) -> Any:
        from mplang_data import source_of

        return source_of(self.kind)

    @property
    def _value(self) -> Any:
        if not isinstance(self.data, Mapping):
            return self.data
        import pyarrow as pa  # type: ignore[import-untyped]
        from mplang_tables import arrow

        cells = [cells for _, cells in self.data.values()]
        return pa.table(dict(zip(self.data, cells, strict=True)), schema=arrow.schema(self._type))

    @property
    def _type(self) -> Any:
        if isinstance(self.data, np.ndarray):
            return TensorType(str(self.data.dtype), self.data.shape)
        if not isinstance(self.data, Mapping):
            from mplang_tables import table_type

            return table_type(self.data)
        data: Mapping[str, tuple[str, Any]] = self.data
        return TableType(tuple((name, kind) for name, (kind, _) in data.items()))

    def _read(self, place: str, kind: BaseType) -> Any:
        """Open and read a source; close its files."""
        files = self._source.open(place, kind)
        try:
            value = self._source.read(files, kind)
        finally:
            for file in files:
                os.close(file)
        return value.to_table() if hasattr(value, "to_table") else value

    def _probe(self, place: str, kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Open and probe a source; close its files."""
        files = self._source.open(place, kind, match, rows=False)
        try:
            rows: int | None = self._source.probe(files, kind, match)
        finally:
            for file in files:
                os.close(file)
        return rows

    def _refused(self, place: str, kind: BaseType, folder: Path) -> None:
        """Check that reading is refused, by an error that does not tell the place."""
        from mplang_data import SourceError

        for read in (self._read, self._probe):
            with pytest.raises(SourceError) as caught:
                read(place, kind)
            if str(folder) in str(caught.value):
                complain(
                    f"the error of {self.kind} tells where its source is",
                    expected="an error that others may be told",
                    got=str(caught.value),
                    fix="leave the place out, and raise … from the error that has it",
                )

    def test_what_is_stored_is_read(self, place: str) -> None:
        """With its types and its nulls, in its order."""
        found = self._read(place, self._type)
        wrong = self._type.mismatch(found)
        if isinstance(self.data, np.ndarray):
            same = wrong is None and np.array_equal(found, self.data, equal_nan=True)
        else:
            same = wrong is None and found.equals(self._value)
        if not same:
            complain(
                f"{self.kind} reads something else than was stored",
                expected=self._value,
                got=found,
                fix="give the type that is asked for, and refuse what is stored as another one",
            )

    def test_a_confined_process_reads_what_is_stored(self, place: str) -> None:
        """It has the open files, and reaches no path, no network and no other process."""
        from mplang_data import DataSet, SourceError
        from mplang_data.ext import check_data_set

        if isinstance(self.data, np.ndarray):
            data_set, rows = DataSet(source=f"{self.kind}:{place}", array=str(self._type)), None
        else:
            columns = dict(self._type.columns)
            data_set = DataSet(source=f"{self.kind}:{place}", columns=columns)
            rows = self._value.num_rows
        try:
            found = check_data_set(data_set)
        except SourceError as error:
            complain(
                f"{self.kind} is not read by a process that has its open files alone",
                expected="the rows that are stored",
                got=f"{error} ({error.__cause__})",
                fix="open all that is read in open(), and read nothing but these files in probe() "
                "and read(): a hostile source must reach no others",
            )
        assert found == rows

    def test_columns_are_those_that_are_asked_for(self, place: str) -> None:
        """In that order, and no others."""
        if isinstance(self.data, np.ndarray):
            return
        kind = TableType(self._type.columns[1::-1])
        names = [name for name, _ in kind.columns]
        assert self._read(place, kind).equals(self._value.select(names))

    def test_a_probe_tells_the_number_of_rows_or_nothing(self, place: str) -> None:
        """Without rows that are not there."""
        rows = None if isinstance(self.data, np.ndarray) else self._value.num_rows
        assert self._probe(place, self._type) in (None, rows)

    def test_a_probe_looks_for_columns_that_are_matched_on(self, place: str) -> None:
        """Which have no type there, and are not read."""
        from mplang_data import SourceError

        if not isinstance(self.data, np.ndarray):
            (first, kind), (second, _), *_ = self._type.columns
            self._probe(place, TableType(((first, kind),)), (second,))
        with pytest.raises(SourceError, match="no column 'not_there', which may be matched on"):
            self._probe(place, self._type, ("not_there",))

    def test_sql_gives_what_it_gives_on_the_rows(self, place: str) -> None:
        """Compare groups of a join of two data sets, run where they are, with DuckDB's of rows."""
        if isinstance(self.data, np.ndarray):
            return
        ibis = pytest.importorskip("mplang_ibis.ext")
        from mplang_tables import table_type

        a, b = (ibis.quoted(name) for name, _ in self._type.columns[:2])
        sql = (
            f"SELECT t.{b}, count(*) AS n, count(u.{a}) AS m FROM t, u "
            f"WHERE t.{a} = u.{a} OR t.{b} IS NULL GROUP BY t.{b} ORDER BY n, t.{b}"
        )
        data_set = {"source": f"{self.kind}:{place}", "columns": dict(self._type.columns)}

        def program() -> mp.MPObject:
            t, u = mp.dataset("owner", "t"), mp.dataset("owner", "u")
            return mp.sql("owner", sql.replace("FROM t, u", "FROM {t} t, {u} u"), t=t, u=u)

        spec, data = mp.ClusterSpec([{"name": "owner"}]), {"t": data_set, "u": data_set}
        with mp.Simulator(spec, data={"owner": data}) as host:
            result = mp.fetch(host, mp.evaluate(host, program))
        expected = ibis.run_sql(sql, dict.fromkeys("tu", self._value), table_type(result))
        if not result.equals(expected):
            complain(
                f"SQL over {self.kind} gives something else than over its rows",
                expected=expected,
                got=result,
                fix="answer as DuckDB does, or refuse what is answered in another way",
            )

    def test_another_type_is_refused(self, place: str, tmp_path: Path) -> None:
        """A number is not read as another one, silently."""
        if isinstance(self.data, np.ndarray):
            kinds: list[Any] = [TensorType(self._type.dtype, (*self.data.shape, 1))]
            kinds.append(TableType((("a", "int64"),)))
        else:
            name, kind = self._type.columns[0]
            other = "int64" if kind == "date32[day]" else "date32[day]"
            kinds = [TableType(((name, other),)), TableType((("not_there", kind),))]
            kinds.append(TensorType("f64", (2,)))
        for each in kinds:
            self._refused(place, each, tmp_path)

    def test_what_is_not_there_is_refused(self, place: str, tmp_path: Path) -> None:
        """Where the source was before."""
        self.remove(tmp_path)
        self._refused(place, self._type, tmp_path)

    def test_what_is_damaged_is_refused(self, place: str, tmp_path: Path) -> None:
        """By an error, and nothing is read."""
        self.damage(tmp_path)
        self._refused(place, self._type, tmp_path)

    def test_no_file_stays_open(self, place: str, tmp_path: Path) -> None:
        """Neither of what was read, nor of what could not be."""

        def count() -> int:
            gc.collect()  # errors hold what they were raised in
            return len(os.listdir("/proc/self/fd"))

        self._read(place, self._type)
        before = count()
        self._read(place, self._type)
        self._probe(place, self._type)
        self.damage(tmp_path)
        self._refused(place, self._type, tmp_path)
        wait_until(lambda: count() <= before, "that no file stays open")
