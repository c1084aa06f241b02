"""Connections of a front to the fronts of peers, for the links of its processes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Any

import msgspec
from mplang_http.ext import split_address

from mplang_core.ext import CommError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.live_config import check_peers
from mplang_worker.front.session import FrontSession
from mplang_worker.tls.credentials import LinkEnd

RETRY_INTERVAL = 0.1  # seconds
log = logging.getLogger("mplang.http.front")


async def link(
    session: FrontSession, engine: EngineProcess, config: WorkerConfig, generation: int
) -> dict[str, Any]:
    """Link an engine and MPC processes to those of all parties, and start a generation.

    Args:
        session: the session, whose lock the caller has; the ends of its parties' links are known.
        engine: its engine.
        config: configuration of this worker.
        generation: number of the generation.

    Returns:
        The generation, and the lease in seconds.

    Raises:
        CommError: a link cannot be established.
        RequestError: a process has ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_link_process(session, engine, session.ends, config))
            for mpc in session.natives.values():
                if mpc.process is not None and mpc.ends:
                    linking = _link_process(session, mpc.process, mpc.ends, config, wait=True)
                    group.create_task(linking)
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    versions = session.request.versions
    done: dict[str, Any] = await engine.call("join", generation=generation, versions=versions)
    return done


async def _link_process(
    session: FrontSession,
    process: EngineProcess,
    ends: Sequence[LinkEnd],
    config: WorkerConfig,
    *,
    wait: bool = False,
) -> None:
    """Link a process to those of its role of all parties; perhaps wait for all links."""
    told = await process.call("introduce", ends=msgspec.to_builtins(ends))
    # of two peers the one connects whose name sorts before the other's
    mine = {name for name in session.parties if name > config.name}
    async with asyncio.TaskGroup() as group:
        # the process tells which links it lacks, and not whom to connect to
        for peer in mine & set(told):
            address = address_of(peer, session, config)
            dialing = dial(process, config.name, peer, address, config.timeouts.connect)
            group.create_task(dialing)
    if wait:
        await process.call("wait")


def address_of(peer: str, session: FrontSession, config: WorkerConfig) -> str:
    """Return where this worker reaches a peer: by its own configuration, if it has certificates.

    A coordinator may reach it at another address, and cannot have this worker connect anywhere.

    Raises:
        RequestError: it is no longer a peer.
    """
    if config.tls is not None and config.peers is not None:
        check_peers(session, config)
        return config.peers[peer]
    return next(party.address for party in session.request.parties if party.name == peer)


def _first(error: BaseException) -> BaseException:
    """Return the first of a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def dial(engine: EngineProcess, name: str, peer: str, address: str, timeout: float) -> None:
    """Link an engine to a peer: connect, and hand over the connection, until the peer takes it.

    Engines cannot connect by themselves. Workers start in any order, and learn of their peers'
    keys in any order, so this is tried again.

    Args:
        engine: the engine.
        name: name of this worker.
        peer: name of the peer.
        address: address of the peer.
        timeout: timeout in seconds.

    Raises:
        CommError: there is no link in time. Its text tells neither the reason nor the address, as
            either may be the owner's alone; the log does.
        RequestError: the engine has ended.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        left = deadline - loop.time()
        reason = "it does not answer"
        try:
            with await asyncio.wait_for(_connect(address), max(left, 0.01)) as sock:
                dialling = engine.call("dial", sock.fileno(), peer=peer)
                await asyncio.wait_for(dialling, max(left, 0.01))
            return
        except RequestError as error:
            if error.code != CommError.__name__:
                raise
            reason = error.text
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error) or reason
        if left <= RETRY_INTERVAL:
            log.warning("no link to %s at %s: %s", peer, address, reason)
            raise CommError(
                f"worker {name} cannot link to {peer}; the reason is in its log", code="L004"
            )
        await asyncio.sleep(RETRY_INTERVAL)


async def _connect(address: str) -> socket.socket:
    """Return a connected socket.

    Raises:
        OSError: no address of the host answers.
    """
    loop = asyncio.get_running_loop()
    host, port = split_address(address)
    failure: OSError = ConnectionError("the host has no address")
    for family, kind, protocol, _, at in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, at)
            return sock
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure
