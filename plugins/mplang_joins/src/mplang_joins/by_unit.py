"""The rows of a table by unit, at the party that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from mplang_match import keys as match_keys
from mplang_match.ext import KeyKind
from mplang_tables import arrow
from mplang_tables.ext import loaded

from mplang_core.ext import KernelError
from mplang_joins.ops import Kinds
from mplang_joins.tokens import Array


class UnitRows(NamedTuple):
    """Rows of a table that have a unit.

    Attributes:
        table: an Arrow table of them.
        units: the different units.
        unit: of each row the position of its unit.
    """

    table: pa.Table
    units: pa.Array
    unit: Array

    @classmethod
    def of(cls, opcode: str, x: object, on: Sequence[str], kinds: Kinds, rows: int) -> UnitRows:
        """Return the rows of a table, or of a scan, by unit.

        Args:
            opcode: the op, which an error names.
            x: the table.
            on: the column that tells whose rows these are; a row without it is none.
            kinds: by which it is compared.
            rows: how many units there are at most.

        Raises:
            KernelError: there are more.
        """
        table = arrow.plain(loaded(x))
        keys = match_keys.keys_of(table, on, [KeyKind(*each) for each in kinds])
        table, keys = table.filter(keys.is_valid()), keys.drop_null()
        different = pc.dictionary_encode(keys)
        if len(different.dictionary) > rows:
            raise KernelError(
                f"{opcode}: the table has more than the {rows} units declared: say in keys: or "
                "rows: of the data set how many there are at most",
                code="R009",
            )
        return cls(table, different.dictionary, different.indices.to_numpy(zero_copy_only=False))
