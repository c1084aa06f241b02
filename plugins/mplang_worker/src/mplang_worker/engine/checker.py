"""Checker: the process that decodes and analyses the programs of one session for the front.

It runs no kernel, so what a coordinator's programs do to the session's engine does not decide what
the front takes them for. It is forked like an engine, and confined like one.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from mplang_analysis import PUBLIC, SEVERAL, Followed, Label, path_to
from mplang_confinement import give_up_calls
from mplang_http.ext import Buffer, Input, JobRequest, Stored

from mplang_core import Program
from mplang_core.ext import AdmissionError
from mplang_worker.base.config import EngineConfig
from mplang_worker.base.digests import sha256
from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import configure_logging
from mplang_worker.engine.labels import SessionLabels
from mplang_worker.engine.programs import Programs
from mplang_worker.engine.run_storage import loads_of, resolve_loads
from mplang_worker.process.call_server import CallServer, FileReply, log_to
from mplang_worker.process.name import NICE, name_process
from mplang_worker.process.session_argument import SessionArgument
from mplang_worker.wire import ipc
from mplang_worker.wire.opening import Opening, shown_program
from mplang_worker.wire.requests import read_job
from mplang_worker.wire.run_facts import RunFacts
from mplang_worker.wire.stored_value import label_of_put

log = logging.getLogger("mplang.http.checker")


class Checker:
    """Analyses the runs of one session.

    Args:
        config: the part of the worker's configuration that engines know.
        given: what it is started with.
    """

    def __init__(self, config: EngineConfig, given: SessionArgument) -> None:
        self._given = given
        self._limits = config.limits
        self._programs = Programs(config, given.coordinator, given.rank, given.parties)
        self._labels = SessionLabels()
        self._last: tuple[str, Program | None] = "", None
        self._submitted: OrderedDict[str, JobRequest] = OrderedDict()

    def program(self, body: Buffer, *, name: str) -> None:
        """Add a program to the cache; see :meth:`mplang_worker.engine.programs.Programs.put`."""
        self._programs.put(name, body)

    def submit(self, body: Buffer, *, run: str) -> dict[str, bool | str]:
        """Take what the coordinator asks for, before the engine has it.

        Args:
            body: a JobRequest in MessagePack.
            run: name of the run.

        Returns:
            As ``is_new`` whether it was not known; ``program`` and ``name`` of its program.

        Raises:
            RequestError: it is malformed, its program is not here, or the run is another one.
        """
        request, is_new = read_job(body), run not in self._submitted
        program = self._programs.get(request.program)
        if request.run != run or self._submitted.setdefault(run, request) != request:
            raise RequestError(409, "replayed", f"there was another run {run!r}")
        while len(self._submitted) > self._limits.jobs:
            self._submitted.popitem(last=False)
        return {"is_new": is_new, "program": program.digest, "name": program.name}

    def take_back(self, body: Buffer, *, run: str) -> None:
        """Forget a run that the engine has not taken.

        Args:
            body: unused.
            run: name of the run.
        """
        self._submitted.pop(run, None)

    def follow(
        self, body: Buffer, *, run: str, openings: list[tuple[int, bytes]], whole: bool
    ) -> FileReply | None:
        """Return what a run would do.

        Args:
            body: unused.
            run: name of the run, which was submitted.
            openings: the openings of the parties, as the engine has them.
            whole: whether all parties have opened it; else it does not begin here, and is
                followed as some of them may have run it.

        Returns:
            A memory file with :class:`RunFacts`.

        Raises:
            AdmissionError: there is no such run, what it loads is not there, or whose data is in
                an input is not known.
            MPLangError: the request, an opening or a label is malformed.
        """
        request = self._submitted.pop(run, None)
        if request is None:
            raise AdmissionError("the coordinator has asked for no such run", code="A001")
        program = self._programs.get(request.program)
        found = {rank: Opening.read(data) for rank, data in openings}
        mine = found[self._given.rank]
        shown = shown_program(program.digest, request.program), sha256(request.inputs)
        if (mine.program, mine.inputs) != shown:
            raise AdmissionError(
                "the engine runs something else than the coordinator asks for", code="A001"
            )
        labels = self._labels.of_inputs(found, request)
        for each, given in zip(labels, request.inputs, strict=True):
            if isinstance(given, Stored):
                self._check_known(given)
            own_label = self._of_own(given)
            each.pop(self._given.rank, None)  # whatever the engine says
            if own_label is not None:
                each[self._given.rank] = own_label
        loads = loads_of(program) if whole else ()
        _, stored = resolve_loads(loads, self._given.parties, found)
        followed = self._labels.follow(program, request, found, labels, stored, mine.key)
        self._last = run, program
        if not whole:
            return None
        _check_told(followed)
        return FileReply(ipc.write_file([RunFacts.of(program, followed, request).write()]))

    def paths(
        self, body: Buffer, *, run: str, rows: list[tuple[str, int, str] | None]
    ) -> list[Sequence[str]]:
        """Return the lines by which private data comes to where it is disclosed.

        Args:
            body: unused.
            run: name of the run that was followed last.
            rows: per row its line, and party and name of the data; ``None`` for no row.
        """
        followed_run, program = self._last
        if followed_run != run or program is None:
            return [() for _ in rows]
        return [() if each is None else path_to(program, *each) for each in rows]

    def _check_known(self, given: Stored) -> None:
        """Refuse an input of which it is not known here what the party that has it got."""
        for rank, name in enumerate(given.names):
            is_result = name is not None and name.startswith(f"{self._given.session}-")
            if is_result and self._labels.of_result(name or "", rank) is None:
                raise AdmissionError(
                    f"the owners of the data in {name} are no longer known; put or compute it "
                    "again",
                    code="A001",
                )

    def _of_own(self, given: Input) -> Label | None:
        """Return the label of this party's copy of an input: of a result that of the run."""
        if not isinstance(given, Stored):
            return PUBLIC
        rank = self._given.rank
        name = given.names[rank] if rank < len(given.names) else None
        if name is None:
            return None
        return self._labels.of_result(name, rank) or label_of_put(rank)


def _check_told(followed: Followed) -> None:
    """Refuse a run in which it is not told which data flows where, as there is so much."""
    rows = (row.sources for row in followed.disclosure.rows)
    stores = (label.sources for at in followed.stores.values() for label in at.values())
    outputs = (label.sources for at in followed.outputs for label in at.values())
    for sources in (*rows, *stores, *outputs):
        if any(source.name == SEVERAL for source in sources):
            raise AdmissionError(
                "a value is made of more data sets and columns than its label can hold", code="A003"
            )


def run(argument: SessionArgument, file: int) -> None:
    """Run a checker.

    Args:
        argument: what it is started with.
        file: descriptor of the socket to the front.
    """
    name_process("mplang-checker")
    os.nice(NICE)
    sock = socket.socket(fileno=file)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a whole group; the front decides
    config = EngineConfig.read(argument.config)
    configure_logging(config.name, config.log_format, config.log_level)
    try:
        config.limits.apply(argument.cores)
        give_up_calls()
        _serve(Checker(config, argument), sock)
    except (EOFError, ConnectionResetError):
        os._exit(0)
    except BaseException:
        log.exception("the checker ends")
    os._exit(1)


def _serve(checker: Checker, sock: socket.socket) -> None:
    calls = CallServer(sock)
    methods: dict[str, Callable[..., Any]] = {
        "program": checker.program,
        "submit": checker.submit,
        "take_back": checker.take_back,
        "follow": checker.follow,
        "paths": checker.paths,
    }
    while True:
        message, file = ipc.receive(sock)
        if message["call"] == "log" and file is not None:
            log_to(file)
        else:  # in order: a run comes after its program
            calls.answer(methods[message["call"]], message, file)
