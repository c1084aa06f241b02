"""StableHLO library: canonical text, signatures, and admission of untrusted code.

It is no plugin: ``mplang-jax`` and ``mplang-spu`` both receive StableHLO from a coordinator.
:mod:`mplang_stablehlo.text` needs no JAX; :mod:`mplang_stablehlo.module` and
:mod:`mplang_stablehlo.admission` do.
"""

from mplang_stablehlo.text import Signature, read, signature_of

__all__ = ["Signature", "read", "signature_of"]
