"""Frontend for functions of the array API standard, run on NumPy."""

from mplang_xp.frontend import xp_compile
from mplang_xp.namespace import xp

__all__ = ["xp", "xp_compile"]
