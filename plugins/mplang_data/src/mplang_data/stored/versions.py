"""Versions of a stored value: a folder of each, and a link to the current one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from mplang_core.ext import MPLangError
from mplang_data.stored.disk import StrPath, at
from mplang_data.stored.entry import Entry, StoreError

CURRENT = "current"
ENTRY = "entry.json"
MAX_ENTRY = 64 << 20  # bytes
_VERSION = re.compile(r"[0-9a-f]{64}")


def versions_of(folder: StrPath) -> list[str]:
    """Return the versions that are here, whole."""
    try:
        return sorted(each for each in os.listdir(folder) if _VERSION.fullmatch(each))
    except OSError:
        return []


def current_of(folder: StrPath) -> str | None:
    """Return the current version; ``None`` if there is none."""
    try:
        found = os.readlink(at(folder, CURRENT))
    except OSError:
        return None
    return found if _VERSION.fullmatch(found) else None


def _read(folder: StrPath) -> Any:
    try:
        with open(at(folder, ENTRY), "rb") as file:
            return json.loads(file.read(MAX_ENTRY))
    except (OSError, ValueError, RecursionError):
        raise StoreError("the metadata of a stored value is damaged or missing") from None


def read_entry(folder: StrPath) -> Entry:
    """Return what is kept beside a version.

    Args:
        folder: the folder of the version.

    Raises:
        StoreError: it is damaged, or gone.
    """
    try:
        return Entry(**_read(folder)["entry"])
    except (LookupError, TypeError, ValueError, MPLangError):
        raise StoreError("the metadata of a stored value is damaged") from None


def sums_of(folder: StrPath) -> Mapping[str, str]:
    """Return the SHA-256 of the files of a version, by name."""
    found = _read(folder).get("files")
    return found if isinstance(found, dict) else {}


def check_here(folder: StrPath, name: str, version: str) -> None:
    """Check that a version is here; it may be any text, such as a path.

    Raises:
        StoreError: it is not.
    """
    if version not in versions_of(folder):
        raise StoreError(f"this version of {name!r} is not here any more")


def current_entry(folder: StrPath) -> Entry | None:
    """Return the current entry in the folder of a value; ``None`` if there is none.

    Raises:
        StoreError: it is damaged.
    """
    found = current_of(folder)
    return None if found not in versions_of(folder) else read_entry(at(folder, str(found)))
