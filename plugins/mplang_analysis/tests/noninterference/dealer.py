"""Token kernels: keys, ciphertexts and shares whose bytes are named by their place, not drawn.

Two runs of a program have the same tokens at the same places, whatever they stand for. The dealer
knows what they stand for; :mod:`opening` asks it on behalf of whoever holds some of them.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jax import enable_x64
from mplang_crypto.types import Ciphertext, CiphertextType, PrivateKey, PublicKey, SymmetricKey
from mplang_jax.kernel import executable
from mplang_spu.share_type import ShareType
from mplang_spu.shares import SpuShare

from mplang_core import Mask
from mplang_core.ext import KernelContext, KernelError

Atom: TypeAlias = tuple[str, int]
"""One uniformly random summand of a secret: the secret, and which summand."""

Form: TypeAlias = Mapping[Atom, int]
"""A linear combination of summands, without its public constant."""

INFO = "lab"  # of all keys that are agreed on


@dataclass(frozen=True)
class Piece:
    """What one party has of a shared number.

    Attributes:
        sharing: the name of the sharing that it is one share of.
        index: which one.
        forms: the combinations of summands that it consists of: two in ABY3, else one.
        value: the number that all of them together stand for.
    """

    sharing: str
    index: int
    forms: tuple[Form, ...]
    value: int


@dataclass(frozen=True)
class Sealed:
    """What a ciphertext stands for: the key that opens it, the content, and who encrypted it."""

    key: bytes
    content: Any
    made_by: int


def digest(*parts: object, size: int = 32) -> bytes:
    """Return a name of so many bytes for some parts."""
    return hashlib.shake_128(repr(parts).encode()).digest(size)


def public_of(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return digest("public", private)


def agreed(private: bytes, public: bytes, info: str = INFO) -> bytes:
    """Return the symmetric key of a private and a public one."""
    return digest("agreed", sorted([public_of(private), public]), info)


@dataclass
class Dealer:
    """Tokens of one experiment, and who has got which.

    Attributes:
        values: per secret the number, the sum of its summands.
        summands: per secret how many there are.
        dealt: per secret the rank that drew the summands; ``None`` if no single one knows them.
        pieces: per content of a share what it is.
        sealed: per nonce what a ciphertext stands for.
        held: per rank the tokens that it made or received.
    """

    values: dict[str, int] = field(default_factory=dict)
    summands: dict[str, int] = field(default_factory=dict)
    dealt: dict[str, int | None] = field(default_factory=dict)
    pieces: dict[bytes, Piece] = field(default_factory=dict)
    sealed: dict[bytes, Sealed] = field(default_factory=dict)
    held: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    _runs: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, run: str) -> None:
        """Number a run, so that places do not depend on the host's session."""
        self._runs[run] = len(self._runs)

    def place(self, key: str) -> str:
        """Return a message key without the session of the host."""
        run, _, position = key.partition("/")
        return f"{self._runs[run]}/{position}"

    def give(self, rank: int, *tokens: Any) -> None:
        """Note that a party has tokens."""
        with self._lock:
            self.held[rank] += tokens

    # -- keys and ciphertexts

    def keygen(self, ctx: KernelContext) -> SymmetricKey:
        return SymmetricKey(digest("key", self.place(ctx.key), ctx.interpreter.rank))

    def keypair(self, ctx: KernelContext) -> tuple[PrivateKey, PublicKey]:
        private = digest("private", self.place(ctx.key), ctx.interpreter.rank)
        return PrivateKey(private), PublicKey(public_of(private))

    def agree(
        self, ctx: KernelContext, private: PrivateKey, public: PublicKey, *, info: str
    ) -> SymmetricKey:
        return SymmetricKey(agreed(private.secret, public.raw, info))

    def encrypt(self, ctx: KernelContext, x: Any, key: SymmetricKey) -> Ciphertext:
        (kind,) = ctx.step.checks
        assert isinstance(kind, CiphertextType)
        rank = ctx.interpreter.rank
        nonce = digest("nonce", self.place(ctx.key), rank, size=12)
        self.sealed[nonce] = Sealed(key.secret, x, rank)
        return Ciphertext(kind, nonce, digest("sealed", nonce))

    def decrypt(self, ctx: KernelContext, ct: Ciphertext, key: SymmetricKey) -> Any:
        found = self.sealed[ct.nonce]
        if found.key != key.secret:
            raise KernelError("the ciphertext is not authentic")
        return found.content

    # -- shares

    def make_shares(
        self, ctx: KernelContext, x: np.ndarray[Any, Any], *, share: ShareType
    ) -> tuple[SpuShare, ...]:
        rank = ctx.interpreter.rank
        name = f"{self.place(ctx.key)}@{rank}"
        return tuple(self._fresh(share, name, i, int(x), rank) for i in range(len(share.parties)))

    def _fresh(
        self, share: ShareType, name: str, index: int, value: int, dealt: int | None
    ) -> SpuShare:
        """Return one share of a number that is split into fresh summands."""
        self._name(name, index, value, len(share.parties), dealt)
        return self._token(share, Piece(name, index, fresh_forms(share, name, index), value))

    def _name(self, name: str, index: int, value: int, summands: int, dealt: int | None) -> None:
        """Note a secret; where members have other numbers for it, it is the first one's."""
        with self._lock:
            if index == 0 or name not in self.values:
                self.values[name], self.summands[name] = value, summands
                self.dealt[name] = dealt

    def _token(self, share: ShareType, piece: Piece) -> SpuShare:
        storage, head, size = _layout(share)
        content = digest("piece", piece.sharing, piece.index, size=size)
        self.pieces[content] = piece
        return SpuShare(share, storage, (head + content,))

    def piece(self, token: SpuShare) -> Piece:
        """Return what a share is."""
        _, head, _ = _layout(token.type)
        return self.pieces[token.chunks[0][len(head) :]]

    def reconstruct(self, ctx: KernelContext, *shares: SpuShare) -> np.ndarray[Any, Any]:
        """Return the number if these are its shares, else noise: what they sum to is masked."""
        pieces = [self.piece(share) for share in shares]
        whole = {piece.sharing for piece in pieces}
        if len(whole) == 1 and [piece.index for piece in pieces] == list(range(len(pieces))):
            value = pieces[0].value
        else:
            noise = digest("noise", [(piece.sharing, piece.index) for piece in pieces], size=8)
            value = int.from_bytes(noise, "little", signed=True)
        return np.asarray(value, shares[0].type.plain.dtype.numpy)

    def run_jax(
        self,
        ctx: KernelContext,
        *args: SpuShare | np.ndarray[Any, Any],
        program: Mapping[str, Any],
        parties: Mask,
        config: Mapping[str, Any],
    ) -> SpuShare:
        """Compute on this party's pieces: by themselves where the function is affine."""
        (share,) = ctx.step.checks
        assert isinstance(share, ShareType)
        mine = parties.global_to_relative_rank(ctx.interpreter.rank)
        name = self.place(ctx.key)
        found = [self._operand(arg, share, f"{name}.{i}", mine) for i, arg in enumerate(args)]
        value = int(_run(program, [number for number, _ in found]))
        factors = affine(program["code"], len(args), lambda xs: int(_run(program, xs)))
        if factors is None:
            return self._fresh(share, name, mine, value, None)
        each = zip(*(forms for _, forms in found), strict=True)
        forms = tuple(combine(zip(factors, terms, strict=True)) for terms in each)
        return self._token(share, Piece(name, mine, forms, value))

    def _operand(
        self, arg: SpuShare | np.ndarray[Any, Any], share: ShareType, name: str, mine: int
    ) -> tuple[int, tuple[Form, ...]]:
        """Return the number of an operand, and what this member has of it.

        A member adds its copy of what is public to the first summand, which is then not random.
        """
        if isinstance(arg, SpuShare):
            piece = self.piece(arg)
            return piece.value, piece.forms
        own = f"{name}@{mine}"
        self._name(own, 0, int(arg), 1, sorted(share.parties)[mine])
        held = (form.get((name, 0), 0) for form in fresh_forms(share, name, mine))
        return int(arg), tuple({(own, 0): number} if number else {} for number in held)


def fresh_forms(share: ShareType, name: str, index: int) -> tuple[Form, ...]:
    """Return the summands that one party has: its own, and in ABY3 the next party's."""
    members = len(share.parties)
    count = 2 if share.protocol == "ABY3" else 1
    return tuple({(name, (index + j) % members): 1} for j in range(count))


def combine(terms: Any) -> Form:
    """Return the sum of forms with factors."""
    total: dict[Atom, int] = defaultdict(int)
    for factor, form in terms:
        for atom, number in form.items():
            total[atom] += factor * number
    return {atom: number for atom, number in total.items() if number}


def _run(program: Mapping[str, Any], numbers: list[int]) -> Any:
    with enable_x64(program["x64"]):
        run = executable(program["code"], program["x64"])
        (result,) = run(*(np.asarray(number, np.int64) for number in numbers))
        return np.asarray(result)


_factors: dict[bytes, list[int] | None] = {}


def affine(
    code: bytes, arity: int, run: Callable[[list[int]], int], tries: int = 3
) -> list[int] | None:
    """Return the factors of an affine function of integers, ``None`` if it is none; by trial."""
    if code not in _factors:
        zero = run([0] * arity)
        unit = [run([int(i == j) for j in range(arity)]) - zero for i in range(arity)]
        points = [[(7 * t + 5 * i + 2) for i in range(arity)] for t in range(tries)]
        fits = all(
            run(point) == zero + sum(a * x for a, x in zip(unit, point, strict=True))
            for point in points
        )
        _factors[code] = unit if fits else None
    return _factors[code]


@functools.cache
def _layout(share: ShareType) -> tuple[str, bytes, int]:
    """Return the storage of a share, the head of its one chunk, and the size of the rest.

    So tokens pass the check of a share that came over a network.
    """
    from mplang_spu import blocks, engine

    io = engine.io(len(share.parties), share.protocol, share.field, share.fxp)
    zero = np.zeros(share.plain.shape, share.plain.dtype.numpy)
    made = blocks.make_shares(io, zero, share)[0]
    (chunk,) = made.chunks
    size = share.nbytes
    return made.storage, chunk[:-size], size
