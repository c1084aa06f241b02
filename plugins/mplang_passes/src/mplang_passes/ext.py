"""Extension interface: helpers for packages with passes of their own."""

from mplang_passes.rewrite import (
    inline as inline,
    rewrite_graphs as rewrite_graphs,
    rewrite_ops as rewrite_ops,
    rewrite_regions as rewrite_regions,
)
