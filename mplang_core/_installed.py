"""Names that installed packages add to ``mplang_core``, for type checkers: none at run time.

The stub package ``mplang-core-stubs``, which those packages require, has a list of them in place of
this module; the core knows none of them.
"""
