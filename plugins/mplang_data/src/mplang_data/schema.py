"""Schemas of files, from which a catalogue is begun.

Imports Arrow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from mplang_tables import arrow
from pyarrow import csv, parquet

from mplang_core import TensorType
from mplang_core.ext import ConfigError
from mplang_data.apart import run_apart
from mplang_data.apart.child import Task
from mplang_data.description import SourceError
from mplang_data.holding import DataSet
from mplang_data.sources import source_of
from mplang_data.sources.csv_errors import header_problem
from mplang_data.sources.files import Files, close_all, mapped, open_files
from mplang_data.sources.npy_file import read_head

KINDS = ("parquet", "csv", "arrow", "npy")  # that tell their types


def schema_of(source: str, folder: str, *, apart: bool = False) -> DataSet:
    """Return a data set that offers all columns of a source of files.

    Args:
        source: its kind and its place, such as ``parquet:people.parquet``.
        folder: the folder that its place is relative to.
        apart: whether a confined process reads it.

    Raises:
        ConfigError: there is no such source, or it tells no schema.
    """
    kind, _, where = source.partition(":")
    found = source_of(kind)
    if not isinstance(found, Files) or kind not in KINDS:
        raise ConfigError(f"a source of the kind {kind} tells no schema; give its columns")
    place = found.place(where, folder)
    try:
        files = open_files(place)
        try:
            asked = {"kind": kind}
            fields = (
                run_apart("mplang_data.schema", asked, files[:1]) if apart else _read(asked, files)
            )
        finally:
            close_all(files)
        return DataSet(source=f"{kind}:{place}", **fields)
    except ConfigError:
        raise
    except Exception as error:  # of whatever reads it
        raise ConfigError(f"{source}: {error}") from error


def _read(asked: dict[str, Any], files: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a data set that tell the type of an open file."""
    kind = asked["kind"]
    if kind == "npy":
        with os.fdopen(os.dup(files[0]), "rb") as file:
            shape, dtype = read_head(file)
            return {"array": str(TensorType(dtype.newbyteorder("="), shape))}
    return {"columns": _columns(kind, files[0])}


def _columns(kind: str, file: int) -> dict[str, str]:
    if kind == "csv":
        return _of_csv(mapped(file))
    data = pa.BufferReader(mapped(file))
    return _types(parquet.read_schema(data) if kind == "parquet" else pa.ipc.open_file(data).schema)


def _of_csv(data: Any) -> dict[str, str]:
    problem = header_problem(data)
    if problem is not None:
        raise SourceError(problem)
    parse = csv.ParseOptions(newlines_in_values=True)
    found = csv.read_csv(pa.BufferReader(data), parse_options=parse)  # all rows: 7 may come first
    integers = {field.name: pa.string() for field in found.schema if field.type == pa.int64()}
    if integers:
        convert = csv.ConvertOptions(column_types=integers, include_columns=list(integers))
        words = csv.read_csv(pa.BufferReader(data), None, parse, convert)
        for name in integers:  # 00501 is a code, and no number
            if pc.any(pc.match_substring_regex(words[name], r"^\s*-?0\d")).as_py():
                i = found.column_names.index(name)
                found = found.set_column(i, name, words[name])
    return _types(found.schema)


def _types(found: Any) -> dict[str, str]:
    # a column of nulls has no type; its owner knows it
    there = [field for field in found if field.type != pa.null()]
    return {field.name: str(arrow.plain_type(field.type)) for field in there}


TASK = Task(_read, "its schema cannot be read")
