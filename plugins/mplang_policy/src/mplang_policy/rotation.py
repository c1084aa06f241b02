"""Rotation of a log: its older entries go to an archive, and the chain goes on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mplang_core.ext import ConfigError
from mplang_policy.ledger import ROTATION, Entry, Ledger, canonical
from mplang_policy.sums import Sums


def rotate(ledger: Ledger, archive: Path, keep: int) -> int:
    """Move all but the last entries of a log to an archive, and say so in the log.

    The archive is on the disk before an entry leaves the log. What is used up stays counted.

    Args:
        ledger: the ledger.
        archive: a new file.
        keep: how many entries stay.

    Returns:
        How many entries it moved.

    Raises:
        ConfigError: the archive cannot be written, or is there already.
        LedgerError: the log cannot be written.
    """
    with ledger.writing() as writing:
        there = list(ledger.entries())
        moved, kept = there[: max(0, len(there) - keep)], there[max(0, len(there) - keep) :]
        if not moved or not kept:
            return 0
        sums = Sums.begin(there)
        for entry in moved:
            sums.add(entry)
        digest = _write(archive, moved, ledger.detail)
        writing.add(
            ROTATION,
            {
                "first": kept[0].number,
                "previous": kept[0].previous,
                "archive": archive.name,
                "sha256": digest,
                **sums.to_dict(),
            },
        )
        writing.drop_before(kept[0].number)
    return len(moved)


def _write(archive: Path, entries: Sequence[Entry], detail: Callable[[str], Any]) -> str:
    """Write an archive, and return its SHA-256."""
    found = hashlib.sha256()
    try:
        made = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(made, "wb") as file:
            for entry in entries:
                rows = entry.body.get("rows")
                more = {} if rows is None else {"detail": detail(rows)}
                line = canonical({**entry._asdict(), **more}).encode() + b"\n"
                found.update(line)
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(archive.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise ConfigError(f"{archive} exists already; name a new file", code="C013") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            archive.unlink()
        raise ConfigError(f"cannot write {archive}: {error.strerror}", code="C013") from None
    return found.hexdigest()


def read_archive(path: Path) -> Iterator[tuple[Entry, Any]]:
    """Yield the entries of an archive, each with what it speaks of.

    Raises:
        ConfigError: it cannot be read, or is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                fields = json.loads(line)
                detail = fields.pop("detail", None)
                yield Entry(**fields), detail
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", code="C013") from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{path} is not an archive of a log", code="C013") from None
