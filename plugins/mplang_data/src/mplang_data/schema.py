"""Schemas of files, from which a catalogue is begun.

Imports Arrow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from mplang_tables import arrow, check_table
from pyarrow import parquet

from mplang_core import TableType, TensorType
from mplang_core.ext import ConfigError
from mplang_data.apart import run_apart
from mplang_data.apart.child import Task
from mplang_data.description import SourceError
from mplang_data.holding import DataSet
from mplang_data.sources import source_of
from mplang_data.sources.csv_file import CsvFiles
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.csv_proposal import proposal_of
from mplang_data.sources.csv_words import Fields, Schema
from mplang_data.sources.files import Files, mapped, open_files
from mplang_data.sources.npy_file import read_head
from mplang_data.sources.source import close_all

KINDS = ("parquet", "csv", "arrow", "npy")  # that tell their types


class Proposed(NamedTuple):
    """Data set that offers all of a source.

    Attributes:
        data_set: the data set.
        reasons: what was found in a CSV file, and why, as sentences.
        doubts: what may be otherwise there, and what its owner says then.
    """

    data_set: DataSet
    reasons: Sequence[str]
    doubts: Sequence[str]


def schema_of(source: str, folder: str, *, apart: bool = False) -> DataSet:
    """Return a data set that offers all columns of a source of files.

    Args:
        source: its kind and its place, such as ``parquet:people.parquet``.
        folder: the folder that its place is relative to.
        apart: whether a confined process reads it.

    Raises:
        ConfigError: there is no such source, or it tells no schema.
    """
    return propose(source, folder, apart=apart).data_set


def propose(
    source: str, folder: str, *, apart: bool = False, csv: Fields | None = None
) -> Proposed:
    """Return a data set that offers all columns of a source of files, and why it is so.

    Args:
        source: its kind and its place, such as ``parquet:people.parquet``.
        folder: the folder that its place is relative to.
        apart: whether a confined process reads it.
        csv: what is known of how a CSV file is written, as fields of :class:`CsvOptions`; the
            others are found out.

    Raises:
        ConfigError: there is no such source, or it tells no schema.
    """
    kind, _, where = source.partition(":")
    files_of = source_of(kind)
    if not isinstance(files_of, Files) or kind not in KINDS:
        raise ConfigError(
            f"a source of the kind {kind} has no schema; give its columns", code="C008"
        )
    known = dict(csv or {})
    if known and kind != "csv":
        raise ConfigError(
            f"csv has the options of CSV files, and its source is {kind}", code="C008"
        )
    CsvOptions(**known)
    place = files_of.place(where, folder)
    try:
        files = open_files(place)
        try:
            asked = {"kind": kind, "csv": known}
            fields = (
                run_apart("mplang_data.schema", asked, files[:1]) if apart else _read(asked, files)
            )
        finally:
            close_all(files)
        # its process may have been taken over by what it read
        reasons, doubts = ([*map(str, fields.get(each, ()))] for each in ("reasons", "doubts"))
        typed = {each: fields[each] for each in ("columns", "array", "csv") if each in fields}
        return Proposed(DataSet(source=f"{kind}:{place}", **typed), reasons, doubts)
    except ConfigError:
        raise
    except SourceError as error:
        detail = error.detail or error.__cause__
        raise ConfigError(
            f"{source}: {error}" + (f": {detail}" if detail else ""), code="C008"
        ) from error
    except Exception as error:  # of whatever reads it
        raise ConfigError(f"{source}: {error}", code="C008") from error


def _read(asked: dict[str, Any], files: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a data set that tell the type of an open file."""
    kind = asked["kind"]
    if kind == "npy":
        with os.fdopen(os.dup(files[0]), "rb") as file:
            shape, _, dtype = read_head(file)
            return {"array": str(TensorType(dtype.newbyteorder("="), shape))}
    if kind == "csv":
        return _of_csv(files[0], asked["csv"])
    data = pa.BufferReader(mapped(files[0]))
    schema = parquet.read_schema(data) if kind == "parquet" else pa.ipc.open_file(data).schema
    return {"columns": _types(schema)}


def _of_csv(file: int, known: Fields) -> dict[str, Any]:
    proposal = proposal_of(mapped(file), known)
    columns, options = proposal.columns, proposal.options
    kind = TableType(tuple(columns.items()))
    try:
        check_table(kind)
    except (TypeError, ValueError) as error:
        raise SourceError(str(error)) from None
    CsvFiles().read([file], kind, options=options)  # what is proposed is what is read
    fields = {"columns": columns, "reasons": proposal.reasons, "doubts": proposal.doubts}
    return fields | ({"csv": options} if options else {})


def _types(found: Schema) -> dict[str, str]:
    # a column of nulls has no type; its owner knows it
    there = [field for field in found if field.type != pa.null()]
    return {field.name: str(arrow.plain_type(field.type)) for field in there}


TASK = Task(_read, "its schema cannot be read")
