"""TCP proxy that delays what it passes on, and limits its rate: parties that are far apart.

Most machines of a benchmark cannot emulate a network, so each direction of a connection goes
through a queue: bytes leave it after the delay, and not faster than the rate. As much is under way
as fits into the pipe, and a window of 1 MB; then the proxy reads no more, as a full link does.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection

PIECE = 16 << 10  # bytes
WINDOW = 1 << 20  # bytes


@contextlib.contextmanager
def slow_links(targets: Mapping[str, str], delay: float, rate: float) -> Iterator[dict[str, str]]:
    """Run proxies in another process.

    Args:
        targets: per name the ``host:port`` to pass connections on to.
        delay: seconds from one end to the other, each way.
        rate: bytes per second, each way of each connection.

    Yields:
        Per name the ``host:port`` of its proxy.
    """
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, dict(targets), delay, rate), daemon=True)
    process.start()
    try:
        yield mine.recv()
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, targets: dict[str, str], delay: float, rate: float) -> None:
    asyncio.run(_proxies(parent, targets, delay, rate))


async def _proxies(parent: Connection, targets: dict[str, str], delay: float, rate: float) -> None:
    found, servers = {}, []
    for name, target in targets.items():

        async def connected(reader, writer, target=target):
            host, _, port = target.rpartition(":")
            try:
                there = await asyncio.open_connection(host, int(port))
            except OSError:  # it does not listen yet; who connects tries again
                writer.close()
                return
            await asyncio.gather(
                _pump(reader, there[1], delay, rate), _pump(there[0], writer, delay, rate)
            )

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        servers.append(server)
        found[name] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    parent.send(found)
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, rate: float
) -> None:
    """Pass on what is read, in order, until the end."""
    loop, pipe = asyncio.get_running_loop(), asyncio.Queue()
    room = asyncio.Semaphore(int((WINDOW + 2 * delay * rate) / PIECE) + 1)

    async def write() -> None:
        while (item := await pipe.get()) is not None:
            due, data = item
            await asyncio.sleep(due - loop.time())
            writer.write(data)
            await writer.drain()
            room.release()
        writer.close()

    writing = asyncio.create_task(write())
    free = 0.0  # when the line is
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE):
            await room.acquire()
            free = max(free, loop.time()) + len(data) / rate
            pipe.put_nowait((free + delay, data))
    pipe.put_nowait(None)
    with contextlib.suppress(OSError):
        await writing
