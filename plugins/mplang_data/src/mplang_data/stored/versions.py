"""Versions of a stored value: a folder of each, and a link to the current one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mplang_core.ext import MPLangError
from mplang_data.stored.entry import Entry, StoreError

CURRENT = "current"
ENTRY = "entry.json"
MAX_ENTRY = 64 << 20  # bytes
_VERSION = re.compile(r"[0-9a-f]{64}")


def versions_of(folder: Path) -> list[str]:
    """Return the versions that are here, whole."""
    try:
        return sorted(each for each in os.listdir(folder) if _VERSION.fullmatch(each))
    except OSError:
        return []


def current_of(folder: Path) -> str | None:
    """Return the current version; ``None`` if there is none."""
    try:
        found = os.readlink(folder / CURRENT)
    except OSError:
        return None
    return found if _VERSION.fullmatch(found) else None


def _read(folder: Path) -> Any:
    try:
        with open(folder / ENTRY, "rb") as file:
            return json.loads(file.read(MAX_ENTRY))
    except (OSError, ValueError, RecursionError):
        raise StoreError("what is kept beside a stored value is damaged, or gone") from None


def read_entry(folder: Path) -> Entry:
    """Return what is kept beside a version.

    Args:
        folder: the folder of the version.

    Raises:
        StoreError: it is damaged, or gone.
    """
    try:
        return Entry(**_read(folder)["entry"])
    except (LookupError, TypeError, ValueError, MPLangError):
        raise StoreError("what is kept beside a stored value is damaged") from None


def sums_of(folder: Path) -> Mapping[str, str]:
    """Return the SHA-256 of the files of a version, by name."""
    found = _read(folder).get("files")
    return found if isinstance(found, dict) else {}


def check_here(folder: Path, name: str, version: str) -> None:
    """Check that a version is here; it may be any text, such as a path.

    Raises:
        StoreError: it is not.
    """
    if version not in versions_of(folder):
        raise StoreError(f"this version of {name!r} is not here any more")


def current_entry(folder: Path) -> Entry | None:
    """Return the current entry in the folder of a value; ``None`` if there is none.

    Raises:
        StoreError: it is damaged.
    """
    found = current_of(folder)
    return None if found not in versions_of(folder) else read_entry(folder / str(found))
