"""What native services promise: right calls are answered, wrong ones refused, runs are apart."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mplang_simulator import ThreadCommunicator

from mplang_core.ext import (
    KERNELS,
    AbortedError,
    Communicator,
    MPLangError,
    NativeParty,
    NativeService,
    NativeSpec,
    native_ops,
    plugin_manager,
)
from mplang_testing.suite import Suite, complain
from mplang_testing.waiting import DEADLINE

GROUP = "mplang.native"
RUN, NEXT, _ = RUNS = "kit-run", "kit-next", "kit-last"
ABORTED = "the kit aborts it"
PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class NativeCall:
    """Call of a kernel to a native service.

    Attributes:
        method: name of the method.
        args: plain data.
        buffers: bytes.
    """

    method: str
    args: Mapping[str, Any] = field(default_factory=dict)
    buffers: Sequence[bytes] = ()


class NativeSuite(Suite, kit=True):
    """A native service answers right calls, refuses wrong ones, and keeps nothing of a run.

    Wrong calls come to one party alone, in a run that was aborted: what waits for peers in it ends
    at once.

    Attributes:
        family: its name in the group ``mplang.native``, which kernels declare that need it.
        parties: how many call their services together.

    Example::

        class TestNative(NativeSuite):
            family = "hello"

            def calls(self, rank, run):
                return [NativeCall("sum", {"as": 1, "count": 2}, [bytes(16)])]

            def refers(self, rank, run):
                return NativeCall("fetch", {"number": 1})
    """

    family: ClassVar[str]
    parties: ClassVar[int] = 2

    def calls(self, rank: int, run: str) -> Sequence[NativeCall]:
        """Return right calls of one party in a run, in their order, all those that it makes."""
        raise NotImplementedError("a NativeSuite gives calls(self, rank, run)")

    def refers(self, rank: int, run: str) -> NativeCall | None:
        """Return a call that what :meth:`calls` left in a run answers, if anything is left."""
        return None

    def make(self, parties: int) -> Sequence[Communicator]:
        """Return one communicator per party; by default they are threads of this process."""
        return ThreadCommunicator.connected(parties, DEADLINE)

    def test_it_is_found(self) -> None:
        """The group names it, and there are kernels that declare it."""
        named = self.family in plugin_manager.names(GROUP)
        plugin_manager.load(self.family, KERNELS)
        declared = dict(native_ops)
        if not named or self.family not in declared.values():
            complain(
                f"no kernel needs the native service {self.family}",
                expected=f"this name in the group {GROUP}, and kernels that declare it",
                got=f"the entry points {plugin_manager.names(GROUP)}, and the kernels {declared}",
                fix=f'KernelSpec(["{self.family}.…"], kernel, native="{self.family}")',
            )

    def test_right_calls_are_answered(self) -> None:
        """Answers are plain data and bytes; buffers are not needed after their call."""
        with self._services() as (_, services):
            self._run(services, RUN)

    def test_runs_follow_each_other(self) -> None:
        """After the end of a run the same calls are answered in the next one."""
        with self._services() as (_, services):
            for run in RUNS:
                self._run(services, run)
                for service in services:
                    service.end_run()

    def test_what_a_run_left_is_of_no_other_run(self) -> None:
        """What refers to it is refused in another run, and after the end."""
        if self.refers(0, RUN) is None:
            return
        with self._services() as (_, services):
            self._run(services, RUN)
            for when in ("amid a run, for another one", "after the end of its run"):
                for rank, service in enumerate(services):
                    call = self.refers(rank, NEXT)
                    assert call is not None
                    if not _refuses(service, NEXT, call):
                        complain(
                            f"{self.family} answers {call} {when}",
                            expected="an error of mplang",
                            got="an answer",
                            fix="keep what a call leaves by run, and drop all in end_run",
                        )
                    service.end_run()

    def test_wrong_calls_are_refused(self) -> None:
        """A method that there is not, other fields and other buffers: an error of mplang each."""
        wrong = [
            (after, what, call)
            for after, right in enumerate(self.calls(0, RUN))
            for what, call in _wrong(right)
        ]
        for after, what, call in wrong:
            with self._services() as (comms, services):
                self._begin(comms, services, after)
                if not _refuses(services[0], RUN, call):
                    complain(
                        f"{self.family} answers the call {after + 1} of a run with {what}",
                        expected="an error of mplang",
                        got="an answer, or that it waits for its peers",
                        fix="check method, fields and buffers before anything is done with them",
                    )

    def test_a_call_that_lacks_a_field_is_no_crash(self) -> None:
        """It is answered, or refused by an error of mplang."""
        with self._services() as (comms, services):
            self._begin(comms, services, 0)
            for right in self.calls(0, RUN):
                for name in right.args:
                    rest = {each: right.args[each] for each in right.args if each != name}
                    _refuses(services[0], RUN, replace(right, args=rest))

    def test_after_a_wrong_call_the_next_run_is_right(self) -> None:
        """What a refused call had begun is gone with its run."""
        with self._services() as (comms, services):
            comms[0].abort(NEXT, ABORTED)
            for _, call in _wrong(self.calls(0, NEXT)[0]):
                _refuses(services[0], NEXT, call)
            services[0].end_run()
            self._run(services, RUN)

    # -- how

    @contextlib.contextmanager
    def _services(self) -> Iterator[tuple[Sequence[Communicator], list[NativeService]]]:
        comms = self.make(self.parties)
        for comm in comms:
            for run in RUNS:
                comm.open(run)
        spec = NativeSpec.of(plugin_manager.entry(GROUP, self.family))
        services = [spec.serve(NativeParty(comm, True, DEADLINE)) for comm in comms]
        yield comms, services
        for service in services:
            service.end_run()

    def _run(self, services: Sequence[NativeService], run: str) -> None:
        """Make all calls of a run, and the one that refers to them; look at the answers."""

        def at(rank: int) -> None:
            refers = self.refers(rank, run)
            for call in [*self.calls(rank, run), *([refers] if refers else [])]:
                _check_answer(call, _call(services[rank], run, call))

        with ThreadPoolExecutor(len(services)) as pool:
            list(pool.map(at, range(len(services))))

    def _begin(
        self, comms: Sequence[Communicator], services: Sequence[NativeService], count: int
    ) -> None:
        """Make so many calls of a run at each party, then abort it."""

        def at(rank: int) -> None:
            for call in self.calls(rank, RUN)[:count]:
                _call(services[rank], RUN, call)

        with ThreadPoolExecutor(len(services)) as pool:
            list(pool.map(at, range(len(services))))
        comms[0].abort(RUN, ABORTED)


def _call(service: NativeService, run: str, call: NativeCall) -> Any:
    """Call a service; what it was given is gone afterwards, as at a worker."""
    given = [memoryview(bytearray(buffer)) for buffer in call.buffers]
    try:
        answer, made = service.call(run, call.method, call.args, given)
        return answer, [bytes(each) for each in made]
    finally:
        for buffer in given:
            _overwrite(buffer)


def _overwrite(buffer: memoryview) -> None:
    whole = buffer.cast("B")
    whole[:] = b"\xa5" * len(whole)


def _refuses(service: NativeService, run: str, call: NativeCall) -> bool:
    """Return whether a call ends in an error of mplang; an error of others is a fault.

    One that waits for peers in an aborted run is not refused: what is wrong with it went unseen.
    """
    try:
        _call(service, run, call)
    except AbortedError:
        return False
    except MPLangError:
        return True
    except Exception as error:
        complain(
            f"a native service fails at {call.method} with {_short(call)}",
            expected="an error of mplang, as RunError",
            got=f"{type(error).__name__}: {error}",
            fix="check what comes; raise RunError from what the library raises",
        )
    return False


def _wrong(right: NativeCall) -> Iterator[tuple[str, NativeCall]]:
    """Return calls that differ from a right one in one respect, each with what that is."""
    yield "a method that there is not", replace(right, method=f"no_{right.method}")
    yield "a field that there is not", replace(right, args={**right.args, "no such field": 1})
    for name, value in right.args.items():
        for other in (_of_another_kind(value), {"a": [None]}):
            yield (
                f"{other!r} as the field {name!r}",
                replace(right, args={**right.args, name: other}),
            )
    yield "a buffer too many", replace(right, buffers=[*right.buffers, b"more"])
    for i, buffer in enumerate(right.buffers):
        others = [*right.buffers[:i], *right.buffers[i + 1 :]]
        yield f"no buffer {i}", replace(right, buffers=others)
        if buffer:
            cut = [*right.buffers[:i], buffer[:-1], *right.buffers[i + 1 :]]
            yield f"a buffer {i} that is cut", replace(right, buffers=cut)


def _of_another_kind(value: Any) -> Any:
    """Return plain data that no field takes which takes the given one."""
    return ["x"] if isinstance(value, (str, bytes)) else "x"


def _check_answer(call: NativeCall, answer: Any) -> None:
    told, _ = answer
    if not isinstance(told, Mapping) or not _is_plain(dict(told)):
        complain(
            f"the answer to {call.method} is not plain data",
            expected="a dict with text as keys, of numbers, text, bytes, lists and dicts",
            got=repr(told)[:300],
            fix="return what MessagePack has; arrays go as bytes",
        )


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return type(value) in PLAIN


def _short(call: NativeCall) -> str:
    sizes = [len(buffer) for buffer in call.buffers]
    return f"{dict(call.args)!r:.300} and buffers of {sizes} bytes"
