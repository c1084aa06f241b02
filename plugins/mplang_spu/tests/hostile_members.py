"""SPU's native services in processes that sockets link, one of which sends wrong messages."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import resource
import signal
import sys
import threading
from contextlib import contextmanager, suppress

from mplang_simulator import host as simulator_host
from mplang_spu.plugin import serve
from mplang_testing.waiting import DEADLINE
from native_adapter import DirectCalls, with_end
from wrong_messages import AtRandom, WrongMessages

from mplang_core.errors import CommError, MPLangError, RunError
from mplang_core.ext import CommunicatorBase, NativeParty

WAIT = 2.0  # seconds that a member waits for a message, as some are dropped
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["hostile_members"])


# -- in a process of a member


class LinkedCommunicator(CommunicatorBase):
    """Communicator over one connection per peer."""

    def __init__(self, rank, links):
        super().__init__(rank, len(links), WAIT)
        self._links, self._sending = links, threading.Lock()
        for peer, link in enumerate(links):
            if link is not None:
                threading.Thread(target=self._read, args=(peer, link), daemon=True).start()

    def _send(self, to_rank, key, data):
        with self._sending:
            self._links[to_rank].send_bytes(key.encode() + b"\0" + bytes(data))
        return len(data)

    def abort(self, run, reason):
        """Do nothing: who called the service aborts the run at all."""

    def _read(self, peer, link):
        while True:
            try:
                key, _, data = link.recv_bytes().partition(b"\0")
            except (EOFError, OSError):
                return
            with suppress(CommError):
                self.deliver(peer, key.decode(), data)


class EvilCommunicator(WrongMessages, LinkedCommunicator):
    """Communicator of the member that sends wrong messages."""


def member(rank, links, control, evil):
    """Serve calls that come by a connection, until it ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # some crash
    comm = (EvilCommunicator if evil else LinkedCommunicator)(rank, links)
    service, calls = serve.serve(NativeParty(comm, False, WAIT)), queue.Queue()
    threading.Thread(target=_control, args=(comm, control, calls), daemon=True).start()
    opened = None
    while (asked := calls.get()) is not None:
        what, run, *rest = asked
        if what == "open":
            if opened is not None:
                service.end_run()
                comm.close(opened)
            opened = run
            comm.open(run)
            if evil:
                comm.wrong = AtRandom(*rest)
            control.send("opened")
            continue
        method, args, buffers = rest
        try:
            answer, made = service.call(run, method, args, list(map(memoryview, buffers)))
            control.send((dict(answer), list(map(bytes, made))))
        except MPLangError as error:
            control.send((type(error), str(error)))


def _control(comm, control, calls):
    while True:
        try:
            what, *rest = control.recv()
        except (EOFError, OSError):
            calls.put(None)
            return
        if what == "abort":
            comm.stop(*rest)
        else:
            calls.put((what, *rest))


# -- in the process of the test


class Members:
    """Processes of the members of one SPU.

    Args:
        count: the number of members.
        evil: who sends wrong messages; ``None`` for nobody.
    """

    def __init__(self, count, evil):
        self._links = [[None] * count for _ in range(count)]
        for a, b in itertools.combinations(range(count), 2):
            self._links[a][b], self._links[b][a] = _PROCESSES.Pipe()
        self.controls, self.processes = [], []
        for rank in range(count):
            mine, theirs = _PROCESSES.Pipe()
            args = rank, self._links[rank], theirs, rank == evil
            process = _PROCESSES.Process(target=member, args=args, daemon=True)
            process.start()
            theirs.close()
            self.controls.append(mine)
            self.processes.append(process)
        for link in itertools.chain(*self._links):
            if link is not None:
                link.close()

    def open(self, run, seed):
        """Open a run at all members, which drop what they have of the one before."""
        for control in self.controls:
            control.send(("open", run, seed))
        for control in self.controls:
            assert control.recv() == "opened"

    def abort(self, run):
        """End all waiting in a run."""
        for control in self.controls:
            with suppress(OSError):
                control.send(("abort", run, "another party failed"))

    def close(self):
        """End the processes once they are idle; return the signals by which any had ended."""
        for control in self.controls:
            control.close()
        for process in self.processes:
            process.join(3 * WAIT)
            if process.is_alive():
                process.kill()
                process.join()
                process.was_killed = True
        return {
            rank: signal.Signals(-process.exitcode).name
            for rank, process in enumerate(self.processes)
            if process.exitcode < 0 and not hasattr(process, "was_killed")
        }


class ProcessCalls(DirectCalls):
    """Calls to the service in a process."""

    def __init__(self, members, rank):
        super().__init__(None)
        self._members, self._rank = members, rank
        self._calling = threading.Lock()  # another party's thread reads a share that it was sent

    def call(self, run, method, args, buffers=()):
        with self._calling:
            return self._call(run, method, args, buffers)

    def _call(self, run, method, args, buffers):
        control = self._members.controls[self._rank]
        try:
            control.send(("call", run, method, args, list(map(bytes, buffers))))
            if not control.poll(DEADLINE):
                raise RunError("the MPC process did not answer")
            first, second = control.recv()
        except (EOFError, OSError):
            self._members.abort(run)
            process = self._members.processes[self._rank]
            process.join(WAIT)
            raise RunError(
                f"the MPC process of party {self._rank} ended by "
                f"{signal.Signals(-process.exitcode).name}"
            ) from None
        if isinstance(first, type):
            self._members.abort(run)
            raise first(second)
        return first, second

    def end(self, run, failed):
        fetch = self._ends.pop(run, None)
        if fetch is not None and not failed:
            fetch()


@contextmanager
def hostile_simulator(monkeypatch, spec, evil):
    """Run a simulator whose members' services are processes, one of them evil.

    Yields:
        The simulator, and a list to which each closed group adds the signals of its processes.
    """
    ended, current = [], []

    class Worker(simulator_host.ObservedWorker):
        def __init__(self, comm, **options):
            super().__init__(comm, **options)
            if comm.rank == 0:
                if current:
                    ended.append(current.pop().close())
                current.append(Members(comm.world_size, evil))
            calls = ProcessCalls(current[0], comm.rank)
            self.natives = {"spu": calls}
            self.evaluate = with_end(self.evaluate, calls)

    class HostileSimulator(simulator_host.Simulator):
        seed = 0

        def _begin(self, run):
            super()._begin(run)
            current[0].open(run, self.seed)

    monkeypatch.setattr(simulator_host, "ObservedWorker", Worker)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the first time, of the forkserver
    with HostileSimulator(spec, check_numbers=False, timeout=DEADLINE) as sim:
        yield sim, ended
    ended.append(current.pop().close())
