"""Lends an engine to each job, on a link that all members have kept in step."""

from __future__ import annotations

import contextlib
import json
import uuid
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from mplang_core.errors import AdmissionError, RunError
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext
from mplang_spu.engine import Engine
from mplang_spu.link import ENV, LinkCommunicator, Mode, choose, from_env

__all__ = ["lent"]

PROCESS = uuid.uuid4().hex  # links in memory join threads of one process

_listening: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()


@contextlib.contextmanager
def lent(ctx: KernelContext, parties: Mask, config: Mapping[str, Any]) -> Iterator[Engine]:
    """Lend this party's engine for one job.

    A link costs little, but protocols begin on it with work of their own (CHEETAH: about a
    second), so engines are kept. One that a job failed on is out of step: maybe at some
    members only, while others got what they needed. So before each job the members tell one
    another which link they have, and take a new one unless all have the same. It is in the
    hands of one job until that has ended well; jobs at the same time have two.

    Raises:
        RunError: the members' settings do not fit together.
        AdmissionError: this worker does not allow such links.
    """
    worker, mode = ctx.interpreter, choose(config)
    _admit(mode, worker.insecure)
    key = "spu", parties, mode, json.dumps(dict(config), sort_keys=True)
    engine: Engine | None = worker.resources.pop(key, None)
    if engine is not None and not engine.take(ctx.key):
        engine = None
    try:
        if not _agreed(ctx, parties, mode, engine.name if engine else ""):
            if engine is not None:
                engine.close()
            engine = _new(ctx, parties, mode, config)
        assert engine is not None
        yield engine
    except BaseException:
        if engine is not None:
            engine.close()
        raise
    finally:
        if engine is not None:
            engine.leave()
    worker.communicator.forget(ctx.key)
    worker.resources[key] = engine


def _admit(mode: Mode, insecure: bool) -> None:
    if mode == "brpc" and not insecure and from_env() is not False:
        raise AdmissionError(
            "BRPC links are unencrypted and ask nobody's name; leave use_mplang_channel as it "
            f"is, or set {ENV}=0, or insecure: true, at every worker"
        )


def _agreed(ctx: KernelContext, parties: Mask, mode: Mode, name: str) -> bool:
    """Tell whether all members have kept the same link, by its name."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    key = f"{ctx.key}?link"
    way = f"{mode} {PROCESS}" if mode == "memory" else mode
    mine = f"{way}|{name}".encode()
    others = [rank for rank in parties if rank != me]
    for rank in others:
        comm.send(rank, key, mine)
    # everyone hears everyone before anyone raises, so all fail for the same reason
    said = [_text(comm.recv(rank, key)) for rank in others]
    differing = [r for r, text in zip(others, said, strict=True) if text.partition("|")[0] != way]
    if differing:
        raise RunError(
            f"the members of this SPU do not have the same link: party {me} takes {mode}, and "
            f"{Mask.from_ranks(differing)} another, or in another process; set {ENV} alike at "
            "all workers, and give brpc_addresses where it is 0"
        )
    return name != "" and all(text == mine.decode() for text in said)


def _text(said: Any) -> str:
    return bytes(said).decode(errors="replace") if isinstance(said, bytes | memoryview) else ""


def _new(ctx: KernelContext, parties: Mask, mode: Mode, config: Mapping[str, Any]) -> Engine:
    """Return an engine for this job, on a link that is named by it."""
    worker = ctx.interpreter
    options: dict[str, Any] = {"name": ctx.key, "timeout": worker.timeout}
    if mode == "channels":
        link = LinkCommunicator(worker.rank, comm=worker.communicator, spu_mask=parties, **options)
        engine = Engine(link, config)
    else:
        addresses = config.get("brpc_addresses") or [f"P{rank}" for rank in parties]
        mine = parties.global_to_relative_rank(worker.rank)
        if mode == "brpc":
            _free(addresses[mine], worker.timeout)
        link = LinkCommunicator(mine, addresses, mem_link=mode == "memory", **options)
        engine = Engine(link, config)
        if mode == "brpc":
            _listening[addresses[mine]] = engine
    engine.take(ctx.key)
    return engine


def _free(address: str, timeout: float) -> None:
    """Close the engine of this process that listens at an address, once its job has ended."""
    engine = _listening.pop(address, None)
    if engine is not None and engine.take("", timeout):
        engine.close()
