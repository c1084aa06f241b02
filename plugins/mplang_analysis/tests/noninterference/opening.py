"""What a party can read of the tokens that it holds, on or off the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mplang_crypto.types import Ciphertext, PrivateKey, PublicKey, SymmetricKey
from mplang_spu.shares import SpuShare

from .dealer import Dealer, Form, agreed

PRIME = 2**61 - 1
"""Numbers are compared modulo a prime: linear algebra over a field, with an exact answer."""

Readable: TypeAlias = Mapping[Any, Any]
"""What is read: per ciphertext its content, per combination of secrets its value."""


def readable(dealer: Dealer, rank: int) -> Readable:
    """Return what a party can read of all tokens that it holds, and did not make itself."""
    tokens = list(dealer.held[rank])
    contents = _decrypted(dealer, tokens)
    pieces = [dealer.piece(token) for token in tokens if isinstance(token, SpuShare)]
    of_others = [
        {atom: a for atom, a in form.items() if dealer.dealt[atom[0]] != rank}
        for piece in pieces
        for form in piece.forms
    ]
    forms = {tuple(sorted(form.items())): form for form in of_others}
    read = {nonce: x for nonce, x in contents.items() if dealer.sealed[nonce].made_by != rank}
    return {**read, **combinations(dealer, list(forms.values()))}


def _decrypted(dealer: Dealer, tokens: list[Any]) -> dict[Any, Any]:
    """Decrypt what can be decrypted; what was encrypted joins the tokens."""
    contents: dict[Any, Any] = {}
    privates = {token.secret for token in tokens if isinstance(token, PrivateKey)}
    publics = {token.raw for token in tokens if isinstance(token, PublicKey)}
    keys = {token.secret for token in tokens if isinstance(token, SymmetricKey)}
    keys |= {agreed(private, public) for private in privates for public in publics}
    for token in tokens:  # grows
        if isinstance(token, Ciphertext) and token.nonce in dealer.sealed:
            found = dealer.sealed[token.nonce]
            if found.key in keys and token.nonce not in contents:
                contents[token.nonce] = found.content
                tokens.append(found.content)
    return contents


def combinations(dealer: Dealer, forms: list[Form]) -> dict[Any, int]:
    """Return the values of the combinations of secrets that combinations of summands give.

    A combination of summands is one of secrets where all summands of a secret have one factor.
    """
    secrets = sorted({name for form in forms for name, _ in form})
    atoms = [(name, i) for name in secrets for i in range(1, dealer.summands[name])]
    rows = []
    for form in forms:
        first = [form.get((name, 0), 0) for name in secrets]
        differing = [form.get(atom, 0) - form.get((atom[0], 0), 0) for atom in atoms]
        rows.append([number % PRIME for number in (*differing, *first)])
    reduced = _reduced(rows, len(atoms) + len(secrets))
    found: dict[Any, int] = {}
    for row in reduced:
        if not any(row[: len(atoms)]):
            factors = dict(zip(secrets, row[len(atoms) :], strict=True))
            value = sum(a * dealer.values[name] for name, a in factors.items()) % PRIME
            found[tuple((name, a) for name, a in factors.items() if a)] = value
    return found


def _reduced(rows: list[list[int]], width: int) -> list[list[int]]:
    """Return the reduced echelon form of a matrix modulo the prime, without rows of zeros."""
    done = 0
    for column in range(width):
        pivot = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        inverse = pow(rows[done][column], -1, PRIME)
        rows[done] = [x * inverse % PRIME for x in rows[done]]
        for i, row in enumerate(rows):
            factor = row[column]
            if i != done and factor:
                rows[i] = [(x - factor * y) % PRIME for x, y in zip(row, rows[done], strict=True)]
        done += 1
    return rows[:done]
