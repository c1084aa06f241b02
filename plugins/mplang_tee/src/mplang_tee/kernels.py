"""Kernels of the dialect ``tee``. Error messages are public, and contain no values."""

from __future__ import annotations

import logging
import time
import warnings
from typing import Any, cast

import numpy as np
from mplang_crypto.ext import random_bytes, x25519_keypair

from mplang_core.ext import KernelContext, KernelError, NativeCalls, native_calls, received
from mplang_tee import settings
from mplang_tee.ops import HELLO
from mplang_tee.provider import find_provider
from mplang_tee.quoting import ask_for_quote
from mplang_tee.sealing import open_value, seal_value, session_secret
from mplang_tee.service import TeeService
from mplang_tee.statement import SessionStatement
from mplang_tee.types import (
    FILES_BYTES,
    KEY_BYTES,
    EnclaveValue,
    SealedValue,
    SessionKey,
    TeeEnclaveKeyType,
    TeeQuote,
    TeeQuoteType,
    TeeSealedType,
    TeeSessionKeyType,
    TeeValueType,
)
from mplang_tee.verification import SIMULATED

log = logging.getLogger("mplang.tee")


# -- sessions


def attest(
    ctx: KernelContext, *, owner: int, enclave: int, provider: str
) -> tuple[SessionKey | None, SessionKey | None]:
    """Verify an enclave as its owner, or answer an owner as the enclave.

    Args:
        ctx: of the op.
        owner: rank of the party that verifies.
        enclave: rank of the party whose enclave is verified.
        provider: who attests it.

    Returns:
        The key of the session at the owner, and at the enclave.

    Raises:
        KernelError: the enclave is not what the owner takes it for, or there is none.
    """
    me = ctx.interpreter.rank
    if me == owner:
        return _verified(ctx, owner, enclave, provider), None
    if me == enclave:
        return None, _answered(ctx, owner, enclave, provider)
    return None, None


def _verified(ctx: KernelContext, owner: int, enclave: int, provider: str) -> SessionKey:
    comm = ctx.interpreter.communicator
    private, public = x25519_keypair()
    nonce = random_bytes(KEY_BYTES)
    comm.send(enclave, f"{ctx.key}|ask", np.frombuffer(nonce + public, np.uint8))
    kind = TeeQuoteType(provider)
    answer: TeeQuote = received(comm.recv(enclave, f"{ctx.key}|answer"), enclave, kind)
    statement = SessionStatement(
        ctx.key, _name(ctx, owner), _name(ctx, enclave), provider,
        nonce, public, answer.public, answer.files,
    )  # fmt: skip
    _verify(ctx, statement, answer.quote)
    secret = session_secret(private, answer.public, statement.digest())
    return SessionKey(TeeSessionKeyType(provider), secret)


def _answered(ctx: KernelContext, owner: int, enclave: int, provider: str) -> SessionKey:
    comm = ctx.interpreter.communicator
    hello = received(comm.recv(owner, f"{ctx.key}|ask"), owner, HELLO).tobytes()
    nonce, asking = hello[:KEY_BYTES], hello[KEY_BYTES:]
    private, public = x25519_keypair()
    files = bytes(FILES_BYTES) if settings.files is None else settings.files
    statement = SessionStatement(
        ctx.key, _name(ctx, owner), _name(ctx, enclave), provider, nonce, asking, public, files
    )
    quote = _quote(ctx, provider, statement.digest())
    comm.send(owner, f"{ctx.key}|answer", TeeQuote(TeeQuoteType(provider), public, files, quote))
    secret = session_secret(private, asking, statement.digest())
    return SessionKey(TeeEnclaveKeyType(provider), secret)


def _is_simulated(ctx: KernelContext) -> bool:
    """Return whether any enclave is taken for a simulated one, as in a simulator.

    A backend whose kernels call libraries in their own process is not a simulator for that.
    """
    party = ctx.interpreter
    return bool(party.insecure) and getattr(party, "natives", None) is None


def _quote(ctx: KernelContext, provider: str, report: bytes) -> bytes:
    if provider == SIMULATED or _is_simulated(ctx):
        return find_provider(SIMULATED).quote(None, report)
    try:
        return ask_for_quote(provider, report)
    except KernelError as error:
        log.warning("run %s: %s", ctx.run, error)
        raise


def _verify(ctx: KernelContext, statement: SessionStatement, quote: bytes) -> None:
    report = statement.digest()
    if _is_simulated(ctx):
        simulated = find_provider(SIMULATED)
        simulated.verify(simulated.expects(), quote, report, int(time.time()))
        return
    about = {"enclave": statement.enclave, "provider": statement.provider}
    buffers = [statement.files, report, quote]
    service: NativeCalls | TeeService = native_calls(ctx) or TeeService(ctx.interpreter.insecure)
    try:
        answer, _ = service.call(ctx.run, "verify", about, buffers)
    except KernelError as error:  # which has no data of anybody
        log.warning("run %s: %s", ctx.run, error)
        raise
    log.info(
        "the enclave of %s is attested by %s for run %s: %s",
        statement.enclave, statement.provider, ctx.run, str(answer.get("says", ""))[:4096],
    )  # fmt: skip


def _name(ctx: KernelContext, rank: int) -> str:
    """Return what a party is called on workers, which is what its certificate says."""
    names = getattr(ctx.interpreter.communicator, "names", None)
    return str(rank) if names is None else str(names[rank])


# -- ways in and out


def seal(ctx: KernelContext, x: Any, key: SessionKey, *, slot: int) -> SealedValue:
    """Encrypt a value for an enclave."""
    (kind,) = ctx.step.checks
    assert isinstance(kind, TeeSealedType)
    return seal_value(ctx, kind, x, key, slot)


def open(ctx: KernelContext, x: SealedValue, key: SessionKey, *, slot: int) -> EnclaveValue:
    """Decrypt a value inside of the enclave."""
    kind = TeeValueType(x.type.inner, x.type.provider)
    return EnclaveValue(kind, open_value(ctx, x, key, slot))


def hold(ctx: KernelContext, x: Any, *, provider: str) -> EnclaveValue:
    """Take what the enclave's party has into the enclave."""
    (kind,) = ctx.step.checks
    assert isinstance(kind, TeeValueType)
    return EnclaveValue(kind, x)


def release(ctx: KernelContext, x: EnclaveValue) -> Any:
    """Release a value to the party of its enclave, which then knows it."""
    return x.plain


def reseal(ctx: KernelContext, x: EnclaveValue, key: SessionKey, *, slot: int) -> SealedValue:
    """Encrypt a value for the owner of a session, inside of the enclave."""
    (kind,) = ctx.step.checks
    assert isinstance(kind, TeeSealedType)
    return seal_value(ctx, kind, x.plain, key, slot)


def unseal(ctx: KernelContext, x: SealedValue, key: SessionKey, *, slot: int) -> Any:
    """Decrypt what an enclave sealed for this party."""
    return open_value(ctx, x, key, slot)


# -- functions


def run(ctx: KernelContext, *operands: Any, provider: str) -> Any:
    """Run a function on what is plain inside.

    On a worker no text of an error or a warning leaves the enclave: logs are read by its party.

    Raises:
        KernelError: an op inside failed.
    """
    plain = [each.plain if isinstance(each, EnclaveValue) else each for each in operands]
    if _is_simulated(ctx):
        made = ctx.run_region("do", plain)
    else:
        try:
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                made = ctx.run_region("do", plain)
        except Exception as error:
            raise _hidden(error) from None
    wrapped = [
        EnclaveValue(cast(TeeValueType, kind), each)
        for kind, each in zip(ctx.step.checks, made, strict=True)
    ]
    return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def _hidden(error: Exception) -> KernelError:
    op = getattr(error, "op", None) or "an op"
    return KernelError(
        f"{op} failed inside of the enclave, where the text of its error stays", code="R001"
    )
