"""Ops on an SPU that has an evil member, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import mplang_core as mp
from mplang_core.errors import PartyError

OPS = {
    "compare": lambda x, y: x > y,
    "product": lambda x, y: (x * y).sum(),
    "sort": lambda x, y: jnp.sort(x + y),
    "argsort": lambda x, y: jnp.argsort(x),
    "matmul": lambda x, y: x.reshape(3, 4) @ y.reshape(4, 3),
    "divide": lambda x, y: x / (y + 1.5),
    "exp": lambda x, y: jnp.exp(x * 0.01) + y,
    "argmax": lambda x, y: jnp.argmax(x - y),
    "select": lambda x, y: jnp.where(x > y, x, y),
    "bools": lambda x, y: (x > 3) & (y > 3),
}
X = np.float32([5, 3, 11, 7, 0, 1, 9, 2, 4, 10, 8, 6])
Y = X[::-1] * 2


def outcome(host, name: str, kept, y, check: Callable[[PartyError], None]) -> str:
    """Run an op of ``OPS``, and return what came of it: ``right``, ``wrong`` or ``failed``.

    Args:
        host: the host.
        name: name of the op.
        kept: shares of ``X``.
        y: ``Y``, at party 1.
        check: asserts what an error says.
    """
    fn = OPS[name]
    program = lambda x, y: mp.reveal(mp.device("SP0")(fn)(x, mp.seal(y)), to="P0")  # noqa: E731
    try:
        found = mp.fetch(host, mp.evaluate(host, program, kept, y, mode="launch"))
    except PartyError as error:
        check(error)
        return "failed"
    right = np.allclose(found, np.asarray(fn(X, Y)), atol=1e-2, rtol=1e-2)
    return "right" if right else "wrong"
