"""Pool of SPU engines, one per job, over links that all members open in the same order."""

from __future__ import annotations

import json
import uuid
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mplang_analysis import differences

from mplang_core import Mask
from mplang_core.ext import AdmissionError, KernelContext, RunError
from mplang_spu.config import ENV, from_env
from mplang_spu.engine import Engine
from mplang_spu.link import LinkCommunicator, Mode, choose
from mplang_spu.process_exit import awaited_at_exit

PROCESS = uuid.uuid4().hex  # memory links connect threads of one process only

_listening: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()


@contextmanager
def acquire_engine(
    ctx: KernelContext, parties: Mask, config: Mapping[str, Any], job: Mapping[str, str]
) -> Iterator[Engine]:
    """Acquire this party's engine for one job.

    A link is cheap, but protocols set up state on it (CHEETAH: about a second), so engines are
    reused. After a failed job an engine is discarded, maybe at some members only. So before each
    job the members exchange the names of their links, and open a new one unless all names are
    equal. Concurrent jobs use separate engines.

    Args:
        ctx: of the op.
        parties: the members.
        config: of the device.
        job: further settings that must be equal at all members, by name: libspu ends the process
            if members run different programs, or shares in different storages.

    Yields:
        The engine. It returns to the pool if the job succeeds.

    Raises:
        RunError: the members' settings or jobs differ.
        AdmissionError: this worker does not allow such links.
    """
    worker = ctx.interpreter
    mode = choose(config, _in_memory(ctx))
    _admit(mode, worker.insecure)
    key = "spu", parties, mode, json.dumps(dict(config), sort_keys=True)
    engine: Engine | None = worker.resources.pop(key, None)
    if engine is not None and not engine.acquire(ctx.key):
        engine = None
    try:
        if not _holds_same_link(
            ctx, parties, {**_settings(mode, config), **job}, engine.name if engine else ""
        ):
            if engine is not None:
                engine.close()
            engine = _create_engine(ctx, parties, mode, config)
        assert engine is not None
        with awaited_at_exit(ctx.key, len(parties) if mode == "memory" else None):
            yield engine
    except BaseException:
        if engine is not None:
            engine.close()
        raise
    finally:
        if engine is not None:
            engine.release()
    worker.communicator.forget(ctx.key)
    worker.resources[key] = engine


def _in_memory(ctx: KernelContext) -> bool:
    """Return whether this worker's communicator lets SPU link the members in memory."""
    lets = getattr(ctx.interpreter.communicator, "links_in_memory", None)
    return lets is not None and bool(lets(ctx.run))


def _admit(mode: Mode, insecure: bool) -> None:
    if mode == "brpc" and not insecure and from_env() is not False:
        raise AdmissionError(
            "BRPC links are unencrypted and ask nobody's name; leave use_mplang_channel as it "
            f"is, or set {ENV}=0, or insecure: true, at every worker"
        )


def _settings(mode: Mode, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that must be equal at all members."""
    way = f"memory of process {PROCESS}" if mode == "memory" else mode
    return {"link": way, **{key: str(value) for key, value in sorted(config.items())}}


def _holds_same_link(
    ctx: KernelContext, parties: Mask, settings: Mapping[str, str], name: str
) -> bool:
    """Return whether all members hold the link of this name.

    Raises:
        RunError: the members' settings differ.
    """
    mine = json.dumps([name, settings]).encode()
    # receive from all before raising, so that all members fail for the same reason
    replies = _exchange(ctx, parties, "link", mine)
    if all(isinstance(other, bytes) and other == mine for other in replies.values()):
        return name != ""
    by_rank = {rank: _parse_settings(other) for rank, other in replies.items()} | {
        ctx.interpreter.rank: settings
    }
    table = differences({f"party {rank}": by_rank[rank] for rank in sorted(by_rank)})
    if table:
        raise RunError(
            f"the members of this SPU do not fit together; set {ENV} alike at all workers, and "
            "give brpc_addresses where it is 0; programs and the storages of shares differ where "
            f"a party or the coordinator is dishonest:\n{table}"
        )
    return False


def _exchange(ctx: KernelContext, parties: Mask, topic: str, mine: bytes) -> dict[int, Any]:
    """Send a message to the other members, and return theirs by rank."""
    comm, key = ctx.interpreter.communicator, f"{ctx.key}?{topic}"
    others = [rank for rank in parties if rank != comm.rank]
    for rank in others:
        comm.send(rank, key, mine)
    return {rank: comm.recv(rank, key) for rank in others}


def _parse_settings(message: Any) -> dict[str, str]:
    try:
        _, settings = json.loads(message)
        return {str(key)[:100]: str(value)[:100] for key, value in settings.items()}
    except (TypeError, ValueError, AttributeError):
        return {"link": "nothing of use"}


def _create_engine(
    ctx: KernelContext, parties: Mask, mode: Mode, config: Mapping[str, Any]
) -> Engine:
    """Create an engine for this job, on a new link named by the job's key."""
    worker = ctx.interpreter
    options: dict[str, Any] = {"name": ctx.key, "timeout": worker.timeout}
    if mode == "channels":
        link = LinkCommunicator(worker.rank, comm=worker.communicator, spu_mask=parties, **options)
        engine = Engine(link, config)
    else:
        addresses = config.get("brpc_addresses") or [f"P{rank}" for rank in parties]
        mine = parties.global_to_relative_rank(worker.rank)
        if mode == "brpc":
            _release_address(addresses[mine], worker.timeout)
            _exchange(ctx, parties, "free", b"!")  # connecting earlier would reach the old link
        link = LinkCommunicator(mine, addresses, mem_link=mode == "memory", **options)
        engine = Engine(link, config)
        if mode == "brpc":
            _listening[addresses[mine]] = engine
    engine.acquire(ctx.key)
    return engine


def _release_address(address: str, timeout: float) -> None:
    """Close the engine of this process that listens at an address, after its job."""
    engine = _listening.pop(address, None)
    if engine is not None and engine.acquire("", timeout):
        engine.close()
