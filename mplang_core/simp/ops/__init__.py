"""Ops among parties, one file each: declaration, interfaces, worker kernel, user's function.

The import of this package declares all of them.
"""

from mplang_core.simp.ops import bounded, call, constant  # noqa: F401  (declared)
from mplang_core.simp.ops.converge import pconv as pconv
from mplang_core.simp.ops.keep import keep as keep
from mplang_core.simp.ops.pcall import pcall_dynamic as pcall_dynamic, pcall_static as pcall_static
from mplang_core.simp.ops.shuffle import pshfl as pshfl, pshfl_s as pshfl_s
from mplang_core.simp.ops.uniform_cond import uniform_cond as uniform_cond
from mplang_core.simp.ops.while_loop import while_loop as while_loop
