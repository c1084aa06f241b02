"""Compiled code of whoever uses this machine: what a simulator compiles is there the next time."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path

from mplang_cache.code_folder import CodeBounds, CodeFolder
from mplang_cache.compiled_code import use_code_cache
from mplang_cache.owner_files import read_or_make_key
from mplang_core.ext import ConfigError

FOLDER = "MPLANG_COMPILED_CODE"
SIZE = "MPLANG_COMPILED_CODE_SIZE"
OFF = "off"
OWNER = "analyst"
log = logging.getLogger("mplang.cache")


@cache  # once a process
def use_own_code_cache() -> None:
    """Make this process, which is an analyst's own, keep compiled code in the analyst's files.

    That is ``mplang/compiled-code`` in ``$XDG_CACHE_HOME``, or what ``MPLANG_COMPILED_CODE`` names;
    with ``off`` none is kept. The key by which it is known again is in ``$XDG_STATE_HOME``.
    ``MPLANG_COMPILED_CODE_SIZE`` is how many bytes it may have.

    Raises:
        ConfigError: the folder that is named cannot be used, or the size is not a number of bytes.
    """
    named, size = os.environ.get(FOLDER, ""), os.environ.get(SIZE, "")
    if named == OFF:
        return
    if size and not (size.isascii() and size.isdigit()):
        raise ConfigError(
            f"{SIZE} is a number of bytes, such as 67108864, got {size!r}", code="C002"
        )
    if named and not os.path.isabs(named):
        raise ConfigError(f"{FOLDER} is an absolute path, or {OFF!r}, got {named!r}", code="C002")
    bounds = CodeBounds(size=int(size)) if size else CodeBounds()
    try:
        folder = named or str(_home("XDG_CACHE_HOME", ".cache") / "mplang/compiled-code")
        key = read_or_make_key(str(_home("XDG_STATE_HOME", ".local/state") / "mplang/code.key"))
        use_code_cache(CodeFolder(folder, key, OWNER, bounds))
    except (ConfigError, RuntimeError) as error:  # there is no home
        if named:
            raise
        log.info("compiled code is not kept: %s", error)


def _home(variable: str, default: str) -> Path:
    """Return a folder by the XDG Base Directory Specification, which ignores relative paths."""
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else Path.home() / default
