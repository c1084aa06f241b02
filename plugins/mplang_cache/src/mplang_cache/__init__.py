"""Cache of compiled functions, by the content of a function. Imports no engine."""

from mplang_cache.compiled import compiled_once
from mplang_cache.function_key import key_of

__all__ = ["compiled_once", "key_of"]
