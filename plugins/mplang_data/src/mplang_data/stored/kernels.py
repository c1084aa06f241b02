"""Kernels of the ops for results that stay."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from mplang_analysis import StorageUse

from mplang_core import BaseType, Mask
from mplang_core.ext import AdmissionError, KernelContext, WireError
from mplang_data.sources.source import close_all
from mplang_data.stored import values
from mplang_data.stored.entry import NO_SINK, StoreError
from mplang_data.stored.run import Storage, StoreRun

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def store(ctx: KernelContext, *operands: Any, name: str, nest: str) -> tuple[()]:
    """Store values at this party, and wait for the other members, in two phases.

    The first member begins, so that of two sessions that store a name one does at all members. One
    makes the version its current one once all have it whole, and removes what was before
    once all have done so. So whoever is interrupted has one that the others have, too.

    Args:
        ctx: of the op.
        *operands: the values.
        name: the name.
        nest: how they are nested.

    Raises:
        AdmissionError: it cannot be stored here; says why.
        AbortedError: it cannot be stored at another member.
    """
    storage, run = _storage(ctx)
    kinds = [value.type for value in ctx.op.inputs if isinstance(value.type, BaseType)]
    version = hashlib.sha256(ctx.key.encode()).hexdigest()
    members, told = ctx.parties, False
    first = next(iter(members))
    with _told(name):
        try:
            if ctx.interpreter.rank != first:
                ctx.interpreter.communicator.recv(first, f"{ctx.key}|begun")
            storage.begin(name, tuple(members))
            if ctx.interpreter.rank == first:  # so that of two sessions one begins everywhere
                _tell(ctx, "begun")
            entry = run.entry(name, version, members, kinds, nest)
            with _files(kinds, operands) as files:
                storage.stage(entry, files)
            told = True
            _meet(ctx, "staged")
            storage.commit(name, version)
            _meet(ctx, "stored")
        except BaseException:
            with contextlib.suppress(StoreError):
                storage.abandon(name, version, told=told)
            raise
        try:
            storage.settle(name, version)
        finally:
            ctx.interpreter.communicator.forget(ctx.key)
    return ()


def load(ctx: KernelContext, *, name: str, types: Sequence[BaseType]) -> Any:
    """Load values of the version that the parties agreed on when the run opened.

    Args:
        ctx: of the op.
        name: the name.
        types: the types of the values.

    Raises:
        AdmissionError: it is of other types, or damaged here.
    """
    storage, run = _storage(ctx)
    version = run.loads.get(StorageUse("load", name, ctx.parties))
    if version is None:
        raise AdmissionError(f"{name!r} is loaded where the run did not say so", code="A006")
    with _told(name):
        entry, files = storage.open(name, version)
        try:
            if entry.types != tuple(types):
                there, said = ", ".join(entry.kinds), ", ".join(map(str, types))
                raise StoreError(f"it is {there}, the program says {said}")
            found = [values.read(kind, file) for kind, file in zip(types, files, strict=True)]
        finally:
            close_all(files)
    return found[0] if len(found) == 1 else found


def remove(ctx: KernelContext, *, name: str) -> tuple[()]:
    """Remove values; do nothing if there are none.

    Args:
        ctx: of the op.
        name: the name.

    Raises:
        AdmissionError: it cannot be removed; says why.
    """
    storage, _ = _storage(ctx)
    with _told(name):
        storage.remove(name, tuple(ctx.parties))
    return ()


def _storage(ctx: KernelContext) -> tuple[Storage, StoreRun]:
    storage: Storage | None = getattr(ctx.interpreter.data, "stored", None)
    if storage is None or storage.run is None:
        raise AdmissionError(NO_SINK, code="A006")
    return storage, storage.run


def _tell(ctx: KernelContext, phase: str) -> None:
    for rank in ctx.parties - Mask.of(ctx.interpreter.rank):
        ctx.interpreter.communicator.send(rank, f"{ctx.key}|{phase}", True)


def _meet(ctx: KernelContext, phase: str) -> None:
    """Wait until all members have come this far."""
    _tell(ctx, phase)
    for rank in ctx.parties - Mask.of(ctx.interpreter.rank):
        ctx.interpreter.communicator.recv(rank, f"{ctx.key}|{phase}")


@contextlib.contextmanager
def _files(kinds: Sequence[BaseType], operands: Sequence[Any]) -> Iterator[list[int]]:
    files: list[int] = []
    try:
        for kind, value in zip(kinds, operands, strict=True):
            try:
                files.append(values.write(kind, value))
            except WireError as error:
                raise StoreError(str(error)) from error
            fcntl.fcntl(files[-1], fcntl.F_ADD_SEALS, SEALS)
        yield files
    finally:
        for file in files:
            os.close(file)


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise AdmissionError(f"{name!r} in this party's storage: {error}", code="A006") from error
