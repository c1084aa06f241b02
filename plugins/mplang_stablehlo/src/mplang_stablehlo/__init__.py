"""StableHLO for mplang's plugins: canonical text, signatures, and admission of untrusted code.

A library, no plugin: ``mplang-jax`` and ``mplang-spu`` both take StableHLO from a coordinator.
:mod:`mplang_stablehlo.text` needs no JAX; :mod:`mplang_stablehlo.module` and
:mod:`mplang_stablehlo.admission` do.
"""

from mplang_stablehlo.text import Signature, read, signature_of

__all__ = ["Signature", "read", "signature_of"]
