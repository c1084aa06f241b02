"""Logs which frames an engine or MPC process sends on its links; imported by workers.

A worker in production tells of no message, so what a peer sees is counted where it is sent: before
encryption, with the head of the value, without the key, as it has the number of the message.
Acknowledgements are left out: whether one is sent depends on who is first.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mplang_worker.link.frames import PREFIX, Kind
from mplang_worker.link.link import Link
from mplang_worker.link.links import Links
from mplang_worker.wire.opening import Opening

log = logging.getLogger("mplang.frames")
_sent: dict[str, Counter[tuple[str, str, int]]] = {}  # by run: peer, place and size
_names: dict[str, str] = {}  # of runs, as their coordinator calls them
_lock = threading.Lock()
_start, _close_run = Link.start, Links.close_run


def _note(peer: str, parts: Sequence[Any]) -> None:
    """Count a frame."""
    data = parts[0]
    kind, _, key_size, head_size, size = PREFIX.unpack_from(data)
    key = bytes(data[PREFIX.size : PREFIX.size + key_size]).decode()
    run, _, place = key.partition("/")
    size += head_size
    if kind == Kind.OPEN:
        opening = Opening.read(bytes(data[PREFIX.size + key_size :]))
        place, size = "open", size - len(opening.run)
        _names[run] = opening.run
    elif kind != Kind.MESSAGE:
        return
    with _lock:
        _sent.setdefault(run, Counter())[peer, place.partition("|")[0], size] += 1


def _started(link: Link) -> None:
    connection: Any = link._connection
    write = connection.write

    def recorded(parts: Sequence[Any]) -> None:
        _note(link.peer, parts)
        write(parts)

    connection.write = recorded
    _start(link)


def _closed(links: Links, run: str, *args: Any) -> None:
    """Log what was sent in a run, one line for each peer and place."""
    with _lock:
        sent = _sent.pop(run, Counter())
    places: dict[tuple[str, str], dict[int, int]] = {}
    for (peer, place, size), count in sorted(sent.items()):
        places.setdefault((peer, place), {})[size] = count
    role = "engine" if links.agreed else "mpc"
    for (peer, place), sizes in places.items():
        log.info("%s", json.dumps([run, role, peer, place, sizes]))
    log.info("%s", json.dumps([run, role, _names.pop(run, "")]))
    _close_run(links, run, *args)


Link.start = _started  # type: ignore[method-assign]
Links.close_run = _closed  # type: ignore[method-assign]
