"""What a run would do, as the process that analyses programs tells it to the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
from mplang_analysis import DisclosureRow, Followed, Source, data_reads, stored_forms

from mplang_core import Mask, Program
from mplang_core.ext import WireError
from mplang_http.values import Buffer

Sources: TypeAlias = tuple[Source, ...]


class RunFacts(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a run would do, at all parties.

    Attributes:
        program: digest of the program.
        name: its name.
        sources: what its rows are made of, each combination once.
        rows: its disclosure, and for each row the position of what it is made of.
        reads: the data sets and columns that it reads, by rank.
        stores: per name and rank what flows into what it leaves in storage.
        forms: per name the forms of that.
    """

    program: str
    name: str
    sources: tuple[Sources, ...]
    rows: tuple[tuple[DisclosureRow, int], ...]
    reads: dict[int, tuple[str, ...]]
    stores: dict[str, dict[int, Sources]]
    forms: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, program: Program, followed: Followed) -> RunFacts:
        """Return the facts of a run.

        Args:
            program: the program.
            followed: what it does with labels.
        """
        places: dict[Sources, int] = {}
        rows = []
        for row in followed.disclosure.rows:
            place = places.setdefault(row.sources, len(places))
            rows.append((replace(row, sources=()), place))
        stores = {
            name: {rank: tuple(sorted(label.sources)) for rank, label in at.items()}
            for name, at in followed.stores.items()
        }
        reads, forms = dict(data_reads(program)), dict(stored_forms(program))
        return cls(program.digest, program.name, tuple(places), tuple(rows), reads, stores, forms)

    def all_rows(self) -> Sequence[DisclosureRow]:
        """Return the rows, with what they are made of.

        Raises:
            WireError: a position is none.
        """
        try:
            return tuple(replace(row, sources=self.sources[at]) for row, at in self.rows)
        except IndexError:
            raise WireError("the facts of a run are damaged") from None

    def write(self) -> bytes:
        """Encode it."""
        return _encoder.encode(self)

    @classmethod
    def read(cls, data: Buffer) -> RunFacts:
        """Decode it.

        Raises:
            WireError: it is malformed.
        """
        try:
            return _decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WireError(f"the facts of a run are damaged: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mask):
        return list(value)
    raise NotImplementedError(type(value).__name__)


def _made(kind: type, value: Any) -> Any:
    if kind is Mask and isinstance(value, list):
        return Mask.from_ranks(value)
    raise NotImplementedError(kind.__name__)


# built at import: msgspec crashes if two threads are the first to use a type
_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_decoder = msgspec.msgpack.Decoder(RunFacts, dec_hook=_made)
