"""SPU frontend: secure multi-party computation on secret shares."""

from mplang_spu.config import SpuConfig
from mplang_spu.ops import ShareType, make_shares, reconstruct, run_jax

__all__ = ["ShareType", "SpuConfig", "make_shares", "reconstruct", "run_jax"]
