"""StableHLO: canonical text, signatures, admission of untrusted code, and passes.

``mplang-jax`` and ``mplang-spu`` both receive StableHLO from a coordinator; the passes link the
modules of any op that implements :class:`RunsStableHlo`.
This package needs no JAX; :mod:`mplang_stablehlo.ext` does.
"""

from mplang_stablehlo.constants import constants_of_code
from mplang_stablehlo.interface import RunsStableHlo
from mplang_stablehlo.source_parts import parts_of
from mplang_stablehlo.text import Facts, Signature, facts_of, read, signature_of

__all__ = [
    "Facts",
    "RunsStableHlo",
    "Signature",
    "constants_of_code",
    "facts_of",
    "parts_of",
    "read",
    "signature_of",
]
