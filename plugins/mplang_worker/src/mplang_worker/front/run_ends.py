"""Ends of runs on record, with what the peers told of their logs; and runs that have not begun."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from mplang_core.ext import AdmissionError
from mplang_worker.base.section_protocols import Gate
from mplang_worker.front.gate_runs import Fields
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread
from mplang_worker.wire.opening import shared_name

MAX_LONG = (1 << 63) - 1
MAX_SIGNED = 64 << 10  # bytes of what a gate signs of its log


async def record_end(gate: Gate, session: FrontSession, status: Fields) -> None:
    """Record the end of a run, or that it was asked for and has not begun.

    Args:
        gate: the gate.
        session: the session of the run.
        status: status of the run, as its engine tells it.
    """
    run, keys = str(status.get("run")), _keys_of_gates(session)
    heads = session.gate_runs.end(run, set(keys))
    if run not in session.begun:  # refused, not begun, or no run of this session
        await _record_attempt(gate, session, run, status)
        return
    session.begun.discard(run)
    about = {
        "coordinator": session.key[0],
        "session": session.link,
        "run": run,
        "state": str(status.get("state")),
        "sent": _sent(session, status),
    }
    await _note(gate, session, about, run, {peer: (heads[peer], keys[peer]) for peer in heads})


async def hear_head(gate: Gate, session: FrontSession, run: str, peer: str, head: bytes) -> None:
    """Keep what the gate of a peer has signed of its log, until the end of the run is on record.

    Args:
        gate: the gate.
        session: the session.
        run: name of the run, as its engine tells it.
        peer: name of the peer, likewise.
        head: what its gate has signed; untrusted.
    """
    key = _keys_of_gates(session).get(peer)
    if key is None or session.jobs.get(run) is None or len(head) > MAX_SIGNED:
        return
    if session.gate_runs.hear(run, peer, head):
        await _note(gate, session, {}, run, {peer: (head, key)})


async def _note(
    gate: Gate,
    session: FrontSession,
    about: Fields,
    run: str,
    heads: Mapping[str, tuple[bytes, str]],
) -> None:
    with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
        await in_thread(gate.end, session.key[0], about, shared_name(*session.key, run), heads)


async def _record_attempt(gate: Gate, session: FrontSession, run: str, status: Fields) -> None:
    """Record that a run was asked for which has not begun here, if nothing else is on record."""
    asked = session.gate_runs.asked.pop(run, None)
    session.gate_runs.pending.pop(run, None)
    if asked is None:
        return
    error = status.get("error")
    text = error.get("text") if isinstance(error, dict) else None
    about = {
        "coordinator": session.key[0],
        "session": session.link,
        **asked,
        "run": run,
        "why": f"it has not begun here: {text or status.get('state')}",
    }
    with contextlib.suppress(AdmissionError):  # which is logged, and refuses what comes
        await in_thread(gate.record, "attempt", about)


def _sent(session: FrontSession, status: Fields) -> dict[str, int]:
    """Return how many bytes were sent to each peer, as an engine tells it."""
    links, sent = status.get("links"), {}
    for rank, name in enumerate(session.parties):
        link = links.get(str(rank)) if isinstance(links, dict) else None
        if isinstance(link, dict) and type(link.get("sent")) is int:
            sent[name] = min(link["sent"], MAX_LONG)
    return sent


def _keys_of_gates(session: FrontSession) -> dict[str, str]:
    """Return the public keys of the peers' gates, by the names of the peers."""
    mine = session.parties[session.request.rank]
    return {end.name: end.gate for end in session.ends if end.gate and end.name != mine}
