"""Import of libspu, with the threads that this machine has cores for.

libspu multiplies matrices with two threads of OpenMP, which wait for each other in busy loops. If
several parties share few cores, that takes several times longer than one thread does. OpenMP reads
its limit when it is loaded, and nothing else of this process is to have it.
"""

from __future__ import annotations

import os

ENV = "OMP_THREAD_LIMIT"  # what the user sets there is left alone
ENOUGH = 4  # cores: each of two parties has two

_limited = ENV not in os.environ and (os.cpu_count() or 1) < ENOUGH
if _limited:
    os.environ[ENV] = "1"
try:
    import spu.libspu as libspu
    from spu import __version__ as version
    from spu.api import Io
finally:
    if _limited:
        del os.environ[ENV]

__all__ = ["Io", "libspu", "version"]
