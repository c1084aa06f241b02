"""SEAL's context of parameters, and its objects as bytes.

Contexts are made here of checked parameters, and never read. What SEAL writes and reads are files,
which are in memory here.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import tenseal.sealapi as seal

from mplang_he.parameters import Parameters

SealObject: TypeAlias = Any
"""An object of SEAL, whose bindings have no types."""

CACHED = 8  # contexts


@dataclass(frozen=True, slots=True)
class SealContext:
    """Context of SEAL.

    Attributes:
        parameters: of the scheme.
        seal: SEAL's context.
        encoder: of numbers in slots.
        evaluator: of ciphertexts.
        ids: of CKKS the identity of each level, the lowest first; of BFV one.
        scales: of CKKS the scale of each level.
        primes: of CKKS the prime that rescaling divides by at each level.
        plain: of BFV the plain modulus.
    """

    parameters: Parameters
    seal: SealObject
    encoder: SealObject
    evaluator: SealObject
    ids: list[SealObject]
    scales: list[float]
    primes: list[int]
    plain: int


@lru_cache(CACHED)
def context_of(parameters: Parameters) -> SealContext:
    """Return the context of parameters."""
    is_ckks = parameters.scheme == "ckks"
    made = seal.EncryptionParameters(getattr(seal.SCHEME_TYPE, parameters.scheme.upper()))
    made.set_poly_modulus_degree(parameters.degree)
    primes = seal.CoeffModulus.Create(parameters.degree, list(parameters.primes))
    made.set_coeff_modulus(primes)
    plain = 0
    if not is_ckks:
        modulus = seal.PlainModulus.Batching(parameters.degree, parameters.plain)
        made.set_plain_modulus(modulus)
        plain = modulus.value()
    ctx = seal.SEALContext(made, True, seal.SEC_LEVEL_TYPE.TC128)
    if not ctx.parameters_set():
        raise ValueError(f"SEAL refuses the parameters: {ctx.parameters_error_message()}")
    numbers = [prime.value() for prime in primes[:-1]]
    encoder = seal.CKKSEncoder(ctx) if is_ckks else seal.BatchEncoder(ctx)
    ids = _ids(ctx) if is_ckks else [ctx.first_parms_id()]
    scales = _scales(numbers, 2.0**parameters.plain) if is_ckks else []
    return SealContext(parameters, ctx, encoder, seal.Evaluator(ctx), ids, scales, numbers, plain)


def _ids(ctx: SealObject) -> list[SealObject]:
    """Return the identities of the levels, the lowest first."""
    levels, each = [], ctx.first_context_data()
    while each is not None:
        levels.append(each.parms_id())
        each = each.next_context_data()
    return levels[::-1]


def _scales(primes: list[int], scale: float) -> list[float]:
    """Return the scale of each level: a product of two at one level is rescaled to the next one's.

    They follow from the lowest one by square roots: squares, from the highest one, drift away.
    """
    scales = [scale]
    for prime in primes[1:]:
        scales.append(math.sqrt(scales[-1] * prime))
    return scales


def saved(value: SealObject) -> bytes:
    """Return one of SEAL's objects as bytes."""
    file = os.memfd_create("seal")
    try:
        value.save(f"/proc/self/fd/{file}")
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)


def loaded(kind: type[SealObject], ctx: SealContext, data: bytes) -> SealObject:
    """Return one of SEAL's objects, which is checked against a context.

    Raises:
        ValueError: it is none.
    """
    value, file = kind(), os.memfd_create("seal")
    try:
        os.write(file, data)
        value.load(ctx.seal, f"/proc/self/fd/{file}")
    except (RuntimeError, ValueError, IndexError) as error:
        raise ValueError(f"it is not a {kind.__name__} of these parameters: {error}") from None
    finally:
        os.close(file)
    return value
