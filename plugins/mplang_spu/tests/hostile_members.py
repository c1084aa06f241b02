"""SPU's native services in processes that sockets link, one of which sends wrong messages."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import random
import resource
import signal
import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
from mplang_simulator import NativeParty, host as simulator_host
from mplang_simulator.mailbox import CommunicatorBase
from mplang_spu.plugin import serve
from mplang_testing.waiting import DEADLINE
from native_adapter import DirectCalls, with_end

from mplang_core.errors import CommError, MPLangError, RunError

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


class EvilCommunicator(LinkedCommunicator):
    """Communicator that changes, drops, repeats and invents messages of the protocol."""

    def begin(self, seed):
        self._dice = random.Random(seed)
        self._rate = self._dice.choice([0.01, 0.05, 0.2])
        self._last = b"\1"

    def _send(self, to_rank, key, data):
        place, bar, tag = key.partition("|")
        data = bytes(data)
        if not bar or self._dice.random() >= self._rate:
            return super()._send(to_rank, key, data)
        what = self._dice.choice(["change"] * 5 + ["repeat", "invent", "drop"])
        if what == "invent":
            super()._send(to_rank, f"{place}|{tag[:-1]}{self._dice.randrange(10)}", self._last)
        elif what == "repeat":
            super()._send(to_rank, key, self._last)
        elif what == "change":
            super()._send(to_rank, key, change(data, self._dice))
        self._last = data or b"\1"
        return len(data) if what == "drop" else super()._send(to_rank, key, data)


def change(data, dice):
    """Return other data: in its bytes, its length, or a number added to all of its words."""
    words = [
        b"\xff" * 8,
        bytes(8),
        (1 << 62).to_bytes(8, "little"),
        (1 << 31).to_bytes(8, "little"),
    ]
    at = dice.randrange(len(data)) if data else 0
    kind = dice.randrange(9)
    if kind == 0:
        return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[: max(at, 1)]
    if kind == 2:
        return data + dice.randbytes(dice.choice([1, 8, 64, 4096]))
    if kind == 3:
        return dice.randbytes(len(data) or 1)
    if kind == 4:
        return b"\xff" * (len(data) or 1)
    if kind == 5:
        return bytes(1)
    if kind == 6:
        return data * 2
    if kind == 7:
        return data[:at] + dice.choice(words) + data[at + 8 :]
    whole = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    added = np.uint64(dice.choice([1, 20, 2000, 1 << 40, 1 << 63]))
    return (whole + added).tobytes() + data[len(data) // 8 * 8 :]


def member(rank, links, control, evil):
    """Serve calls that come by a connection, until it ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # some crash
    comm = (EvilCommunicator if evil else LinkedCommunicator)(rank, links)
    service, calls = serve(NativeParty(comm, False, WAIT)), queue.Queue()
    threading.Thread(target=_control, args=(comm, control, calls), daemon=True).start()
    while (call := calls.get()) is not None:
        run, method, args, buffers = call
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
        if what == "open":
            run, seed = rest
            comm.open(run)
            if isinstance(comm, EvilCommunicator):
                comm.begin(seed)
            control.send("opened")
        elif what == "abort":
            comm.stop(*rest)
        else:
            calls.put(rest)


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
        """Open a run at all members."""
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

    def call(self, run, method, args, buffers=()):
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
