"""Homomorphic encryption on devices: a party computes on what another one encrypted.

On a device of kind ``HE`` one member has the key, and the other one, the evaluator, computes: sums
and products of encrypted columns, by CKKS for floats and BFV for integers.

Example:
    >>> import numpy as np
    >>> import mplang_core as mp
    >>> cluster = mp.ClusterSpec.from_dict({
    ...     "nodes": [{"name": "clinic"}, {"name": "vendor"}],
    ...     "devices": {
    ...         "C": {"kind": "PPU", "members": ["clinic"]},
    ...         "V": {"kind": "PPU", "members": ["vendor"]},
    ...         "H": {"kind": "HE", "members": ["clinic", "vendor"], "config": {"holder": 0}},
    ...     },
    ... })
    >>> def program():
    ...     x = mp.put("C", np.array([[1, 2], [3, 4]], np.int8))
    ...     w = mp.put("V", np.array([10, -1], np.int16), range=(-10, 10))
    ...     score = mp.device("H")(lambda x, w: (x.astype("int32") @ w.astype("int32")) ** 2)(x, w)
    ...     return mp.reveal(score, to="C")
    >>> with mp.Simulator(cluster) as sim:
    ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
    [64, 676]
"""

from mplang_he.config import HeConfig
from mplang_he.ops import keygen
from mplang_he.parameters import Parameters
from mplang_he.rows import rotate_rows, sum_rows
from mplang_he.types import HeCiphertextType, HePrivateKeyType, HePublicKeyType, HeRelinKeyType

__all__ = [
    "HeCiphertextType",
    "HeConfig",
    "HePrivateKeyType",
    "HePublicKeyType",
    "HeRelinKeyType",
    "Parameters",
    "keygen",
    "rotate_rows",
    "sum_rows",
]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
