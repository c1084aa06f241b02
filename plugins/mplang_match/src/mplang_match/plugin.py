"""Plugin hooks of `mplang_match`. Imports no Arrow and no libpsi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ext import (
    Dialect,
    KernelContext,
    KernelSpec,
    NativeParty,
    NativeService,
    NativeSpec,
    hookimpl,
)
from mplang_match import ops
from mplang_match.token_type import TokensType


def _match(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    from mplang_match.kernels import match

    return match(ctx, *operands, **attrs)


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``match``: its op, and the type of what is sent."""
    return [Dialect("match", ops=[ops.MATCH], types=[TokensType])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernel of the op."""
    return [KernelSpec(["match.match"], _match, native="match")]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernel imports when it first runs."""
    return ["mplang_match.kernels", "mplang_match.channel", "spu.libpsi"]


def _serve(party: NativeParty) -> NativeService:
    from mplang_match.service import MatchService

    return MatchService(party)


serve = NativeSpec(_serve, folder=True, programs=("sh", "tail", "sort"))
"""The native service of matching: it gets tokens; libpsi sorts lines of files by programs."""
