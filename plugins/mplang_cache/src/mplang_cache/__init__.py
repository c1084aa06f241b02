"""Caches for compilers: functions by their content, and code across processes. Imports no engine.

Programs of the same function are kept by :func:`compiled_once` for a process, and what engines
compile of them by :func:`keep_code` for all processes of one owner.
"""

from mplang_cache.compiled import compiled_once
from mplang_cache.compiled_code import (
    CodeCache,
    code_key,
    drop_code,
    find_code,
    has_code_cache,
    keep_code,
    machine,
    use_code_cache,
)
from mplang_cache.function_key import key_of
from mplang_cache.own_code import use_own_code_cache
from mplang_cache.packages import is_installed, packages_of

__all__ = [
    "CodeCache",
    "code_key",
    "compiled_once",
    "drop_code",
    "find_code",
    "has_code_cache",
    "is_installed",
    "keep_code",
    "key_of",
    "machine",
    "packages_of",
    "use_code_cache",
    "use_own_code_cache",
]
