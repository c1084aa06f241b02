"""Simulators whose kernels call native services as those of workers do, in this process."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import msgspec.msgpack
from mplang_simulator import ThreadCommunicator, host as simulator_host
from mplang_spu.plugin import serve

import mplang_core as mp
from mplang_core.ext import NativeParty


class DirectCalls:
    """Calls to a service of this process; what is called and answered goes through bytes.

    Attributes:
        said: the method, arguments and sizes of buffers of each call.
    """

    def __init__(self, service):
        self.service = service
        self.said = []
        self._ends = {}

    def call(self, run, method, args, buffers=()):
        packed = msgspec.msgpack.encode(args)
        given = [memoryview(bytes(buffer)) for buffer in buffers]
        self.said.append(
            (method, msgspec.msgpack.decode(packed), [len(buffer) for buffer in given])
        )
        answer, made = self.service.call(run, method, msgspec.msgpack.decode(packed), given)
        for buffer in given:
            buffer.release()  # they are there until the call ends
        return msgspec.msgpack.decode(msgspec.msgpack.encode(answer)), [
            memoryview(bytes(each)) for each in made
        ]

    def before_end(self, run, fetch):
        self._ends[run] = fetch

    def end(self, run, failed):
        fetch = self._ends.pop(run, None)
        try:
            if fetch is not None and not failed:
                fetch()
        finally:
            self.service.end_run()


def with_end(evaluate, calls):
    @functools.wraps(evaluate)
    def evaluate_and_end(program, inputs, run, *args, **kwargs):
        failed = True
        try:
            results = evaluate(program, inputs, run, *args, **kwargs)
            failed = False
            calls.end(run, failed)
            return results
        finally:
            if failed:
                calls.end(run, failed)

    return evaluate_and_end


@contextmanager
def native_services(monkeypatch, insecure=True):
    """Have simulators made now give their workers a native service of SPU."""

    class Worker(simulator_host.ObservedWorker):
        def __init__(self, comm, **options):
            super().__init__(comm, **options)
            made = NativeParty(comm, insecure, options["timeout"])
            calls = DirectCalls(serve.serve(made))
            self.natives = {"spu": calls}
            self.evaluate = with_end(self.evaluate, calls)

    with monkeypatch.context() as patch:
        patch.setattr(simulator_host, "ObservedWorker", Worker)
        patch.setattr(  # the services of workers are processes
            ThreadCommunicator, "links_in_memory", lambda self, run: False
        )
        yield


def calls_of(sim):
    """Return each party's calls to its service."""
    return [worker.natives["spu"] for worker in sim._parties.workers]


def held_by(sim):
    """Return how many shares each party's service holds."""
    return [len(calls.service._held) for calls in calls_of(sim)]


def simulator(spec, **options):
    """Return a simulator without checks of numbers, which compare plain results."""
    return mp.Simulator(spec, check_numbers=False, **options)
