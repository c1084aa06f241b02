"""Refusal of engines' requests that the permitted program does not make; logged.

An engine runs its coordinator's code, and may have been taken over by it. What was reviewed is what
runs: the front answers the questions of the permitted program, and no others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mplang_analysis import DataQuestion
from mplang_analysis.ext import quoted, shortened

from mplang_worker.base.errors import RequestError
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.sections import Answer
from mplang_worker.front.session import FrontSession

MAX_NAMED = 4  # data sets of a question
MAX_SQL = 500  # characters in the owner's log
CHANGED = "it has changed since this run has read it before; run it again"
PUBLIC = "the program that was permitted does not ask for this"
log = logging.getLogger("mplang.http.front")


async def refuse_question(gate: FrontGate, session: FrontSession, question: DataQuestion) -> Answer:
    """Refuse a question about data sets.

    Args:
        gate: the gate, whose log has it.
        session: the session of the engine.
        question: what it asks; untrusted.
    """
    names = sorted({each.data for each in question.tables.values()})
    shown = ", ".join(quoted(each) for each in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    what = f"{'a query' if question.sql else 'rows'} of data set {shown}{more}"
    if question.digest in session.permitted.before:
        log.info("a run of %s has ended, and its engine asks for %s", session.key[0], what)
    else:
        await _accuse(gate, session, what, question.sql)
    return Answer({"refused": PUBLIC})


async def refuse_storage(
    gate: FrontGate, session: FrontSession, method: str, args: Mapping[str, object]
) -> Answer:
    """Refuse a question about storage; see :func:`refuse_question`."""
    entry = args.get("entry")
    name = entry.get("name") if isinstance(entry, dict) else args.get("name")
    await _accuse(gate, session, f"{quoted(method)} of {quoted(str(name))} in storage")
    return Answer({"refused": PUBLIC})


def permit_readings(session: FrontSession, run: str, question: DataQuestion) -> None:
    """Permit the rows of the data sets of a permitted query, which no source can run.

    Args:
        session: the session.
        run: the run that asked; another one may have begun since, which may not read them.
        question: the query.
    """
    permitted = session.permitted
    if permitted.run == run and question.digest in permitted.questions:
        more = {each.digest for each in question.readings}
        session.permitted = permitted._replace(questions=permitted.questions | more)


def sees_one_state(
    session: FrontSession, run: str, question: DataQuestion, versions: Mapping[str, str | None]
) -> bool:
    """Return whether a run sees the data sets of a question as it has seen them before.

    An engine that was taken over would ask again after each change, and learn what has changed.

    Args:
        session: the session.
        run: the run that asked; without a gate, which knows of runs, nothing is compared.
        question: what it asked.
        versions: by the names in the question what differs after a source has changed; ``None`` if
            nothing tells that.
    """
    states = session.permitted.states
    if states is None or session.permitted.run != run:
        return True
    seen = {question.tables[name].data: each for name, each in versions.items()}
    return all(states.setdefault(data, each) == each for data, each in seen.items())


async def _accuse(gate: FrontGate, session: FrontSession, what: str, sql: str = "") -> None:
    """Record that an engine asks for what its program does not, unless its session has ended."""
    if session.closed or session.over:
        return
    why = (
        f"its engine asks for {shortened(what)}, and the program that was permitted does not: the "
        "engine may have been taken over"
    )
    log.warning("a run of %s is refused something: %s", session.key[0], why)
    if sql:
        log.warning("it asks for %s", quoted(sql, MAX_SQL))
    await gate.refused(session, {"run": session.permitted.run}, RequestError(403, "forged", why))
