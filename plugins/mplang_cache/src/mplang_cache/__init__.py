"""Cache of compiled functions, by the content of a function. Imports no engine."""

from mplang_cache.compiled import compiled_once
from mplang_cache.function_key import key_of
from mplang_cache.packages import is_installed, packages_of

__all__ = ["compiled_once", "is_installed", "key_of", "packages_of"]
