"""Request to run a program: what a coordinator sends to each worker."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

# the look-ahead is needed as Python's $ also matches before a trailing newline
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$(?!\n)")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]


class Public(msgspec.Struct, frozen=True, array_like=True, tag="public"):
    """Input that all parties are given: a small value, framed."""

    value: bytes


class Uploaded(msgspec.Struct, frozen=True, array_like=True, tag="uploaded"):
    """Input that all parties are given: a value that was uploaded before, by its SHA-256."""

    digest: Sha256


class Stored(msgspec.Struct, frozen=True, array_like=True, tag="stored"):
    """Input that the parties have: per rank the name of its value, ``None`` if it has none."""

    names: list[str | None]


Input: TypeAlias = Public | Uploaded | Stored
"""An input of a job, by its position: the same at all parties, or of each its own."""


class JobRequest(msgspec.Struct, frozen=True):
    """Request to run a program; MessagePack.

    Attributes:
        run: name of the run, which begins with that of the session.
        program: SHA-256 of the program's bytes, in hex.
        generation: generation of the session.
        inputs: inputs of the program; the same list for all parties.
        parties: ranks that run it: all, or those that take part in its only op.
        release: names of values to release.
        record: whether to record spans.
        step: whether the program is one op of standard mode or of an eager call.
        after: name of an earlier run of the session at this worker, whose end the coordinator has
            not awaited: it may give the inputs, and unless it ends well, this one is not run.
        texts: SHA-256 of functions and texts of the program's source lines, in hex, as the
            coordinator tells; not of a step.
    """

    run: Name
    program: Sha256
    generation: Annotated[int, Meta(ge=0)]
    inputs: list[Input]
    parties: Annotated[list[int], Meta(min_length=1, max_length=1024)]
    release: list[str] = []
    record: bool = False
    step: bool = False
    after: Name | None = None
    texts: Sha256 | None = None
