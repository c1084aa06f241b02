"""Facts about a run, from the checker for the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from mplang_analysis import (
    MAX_PARTIES,
    DisclosureRow,
    Followed,
    Source,
    Spend,
    data_questions,
    data_reads,
    lines_digest,
    storage_of,
    stored_forms,
)
from mplang_http.ext import Buffer, Input, JobRequest, Public, Stored, read_plain
from msgspec import Meta

from mplang_core import Mask, Program
from mplang_core.ext import WireError
from mplang_worker.base.digests import sha256

MAX_NUMBERS = 64  # elements of a public input that owners are asked about one by one

Numbers: TypeAlias = tuple[bool | int | float, ...]
Sources: TypeAlias = tuple[Source, ...]
T = TypeVar("T")


class RunFacts(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Facts about one run.

    Attributes:
        program: what its program does with the labels of the inputs, as :class:`ProgramFacts`.
        inputs: its public inputs: position and elements, if they are few numbers.
        given: SHA-256 of all its inputs, by their contents if public and else by their names.
    """

    program: bytes
    inputs: tuple[tuple[int, Numbers | None], ...]
    given: str

    @classmethod
    def of(cls, program: Program, followed: Followed, request: JobRequest) -> RunFacts:
        """Return the facts of a run.

        Args:
            program: the program.
            followed: what it does with labels.
            request: what the coordinator asks for.
        """
        inputs = request.inputs
        public = ((i, each) for i, each in enumerate(inputs) if not isinstance(each, Stored))
        numbers = tuple((i, _numbers(each)) for i, each in public)
        facts = ProgramFacts.of(program, followed, request.texts or "")
        return cls(facts.write(), numbers, sha256(inputs))

    def write(self) -> bytes:
        """Encode it."""
        return _encoder.encode(self)

    @classmethod
    def read(cls, data: Buffer) -> RunFacts:
        """Decode it.

        Raises:
            WireError: it is malformed.
        """
        return _read(_run_decoder, data)


class ProgramFacts(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Facts about a program at all parties, over the labels of its inputs.

    Attributes:
        program: digest of the program.
        name: its name.
        sources: what its rows are made of, each combination once.
        rows: its disclosure, and for each row the position of what it is made of.
        reads: the data sets and columns that it reads, by rank.
        stores: per name and rank what flows into what it leaves in storage.
        forms: per name the forms of that.
        storage: what it does in storage: action, name and ranks.
        shown: SHA-256 of its names and lines.
        texts: SHA-256 of functions and texts of its lines, as its coordinator tells; or empty.
        spends: what it uses up of the budgets of data sets.
        remarks: why guards of it do not count, with their lines.
        questions: digests of what its engines ask about data sets, by rank.
    """

    program: str
    name: str
    sources: tuple[Sources, ...]
    rows: tuple[tuple[DisclosureRow, Annotated[int, Meta(ge=0)]], ...]
    reads: dict[int, tuple[str, ...]]
    stores: dict[str, dict[int, Sources]]
    forms: dict[str, tuple[str, ...]]
    storage: tuple[tuple[str, str, tuple[int, ...]], ...]
    shown: str
    texts: str
    spends: tuple[Spend, ...]
    remarks: tuple[str, ...]
    questions: dict[int, tuple[str, ...]]

    @classmethod
    def of(cls, program: Program, followed: Followed, texts: str = "") -> ProgramFacts:
        """Return the facts of a program.

        Args:
            program: the program.
            followed: what it does with labels.
            texts: SHA-256 of functions and texts of its lines.
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
        return cls(
            program=program.digest,
            name=program.name,
            sources=tuple(places),
            rows=tuple(rows),
            reads=dict(data_reads(program)),
            stores=stores,
            forms=dict(stored_forms(program)),
            storage=tuple((e.action, e.name, tuple(e.parties)) for e in storage_of(program)),
            shown=lines_digest(program),
            texts=texts,
            spends=tuple(followed.spends),
            remarks=tuple(followed.remarks),
            questions={
                rank: tuple(sorted(each.digest for each in asked))
                for rank, asked in data_questions(program).items()
            },
        )

    def all_rows(self) -> Sequence[DisclosureRow]:
        """Return the rows, with what they are made of.

        Raises:
            WireError: a position is none.
        """
        try:
            return tuple(replace(row, sources=self.sources[at]) for row, at in self.rows)
        except IndexError:
            raise WireError("the facts of a run are damaged", code="L005") from None

    def write(self) -> bytes:
        """Encode it."""
        return _encoder.encode(self)

    @classmethod
    def read(cls, data: Buffer) -> ProgramFacts:
        """Decode it.

        Raises:
            WireError: it is malformed.
        """
        return _read(_decoder, data)


def _read(decoder: msgspec.msgpack.Decoder[T], data: Buffer) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"the facts of a run are damaged: {error}", code="L005") from None


def _numbers(given: Input) -> Numbers | None:
    """Return the elements of a public input; ``None`` if they are many, or no numbers."""
    if not isinstance(given, Public):
        return None
    value = read_plain(given.value)
    if not isinstance(value, np.ndarray | np.generic) or value.size > MAX_NUMBERS:
        return None
    found = tuple(np.ravel(value).tolist())
    return found if all(isinstance(each, bool | int | float) for each in found) else None


def _plain(value: Any) -> list[int]:
    if not isinstance(value, Mask):
        raise TypeError(f"a {type(value).__name__} is not a fact")
    return list(value)


def _made(kind: type, value: Any) -> Mask:
    """Return a mask of what a checker tells, which is untrusted: a rank is a bit of it."""
    if kind is not Mask or not isinstance(value, list):
        raise ValueError("expected ranks")
    if not all(type(rank) is int and 0 <= rank < MAX_PARTIES for rank in value):
        raise ValueError("expected ranks")
    return Mask.from_ranks(value)


# built at import: msgspec crashes if two threads are the first to use a type
_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_decoder = msgspec.msgpack.Decoder(ProgramFacts, dec_hook=_made)
_run_decoder = msgspec.msgpack.Decoder(RunFacts)
