"""A try of SEAL, for ``mplang doctor``."""

from __future__ import annotations

import numpy as np

from mplang_he import compute
from mplang_he.parameters import BFV_PRIMES


def works() -> bool:
    """Return whether numbers come back as they were encrypted."""
    parameters = {"parameters": ("bfv", 4096, BFV_PRIMES[4096], 20)}
    secret, public, _ = compute.run("keygen", parameters, []).buffers
    about = {**parameters, "rows": 3}
    numbers = np.array([1, -2, 3], "<i8")
    sealed = compute.run("encrypt", about, [public, numbers.tobytes()]).buffers
    (data,) = compute.run("decrypt", {**about, "count": 1}, [secret, *sealed]).buffers
    return bool((np.frombuffer(data, "<i8") == numbers).all())
