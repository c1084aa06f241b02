"""SPU frontend: secure multi-party computation on secret shares."""

from mplang_spu.config import SpuConfig, config_of, resolve_config
from mplang_spu.ops import make_shares, reconstruct, run_jax
from mplang_spu.share_type import ShareType

__all__ = [
    "ShareType",
    "SpuConfig",
    "config_of",
    "make_shares",
    "reconstruct",
    "resolve_config",
    "run_jax",
]
