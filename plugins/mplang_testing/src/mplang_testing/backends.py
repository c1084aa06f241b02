"""What a backend promises: a program means there what it means everywhere."""

from __future__ import annotations

import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from mplang_trace import Span, record

from mplang_core import (
    ClusterSpec,
    MPLangError,
    compile,
    constant,
    evaluate,
    fetch,
    invoke,
    pconv,
    pshfl,
    pshfl_s,
    public,
    put,
    simp,
    uniform_cond,
    while_loop,
)
from mplang_core.ext import Location, Mode, ObservedHost, PartyError, SimpHost, TraceError
from mplang_testing import dialect, programs, strategies
from mplang_testing.backend_refusals import BackendRefusals
from mplang_testing.suite import complain, for_all
from mplang_testing.waiting import DEADLINE, wait_until


class BackendSuite(BackendRefusals, kit=True):
    """Programs give what NumPy gives, failures are told and do no harm, threads do not mix.

    Workers refuse wrong programs, the fetch of secrets, and what is another session's.

    A subclass gives :meth:`make`. Workers in processes of their own import
    :mod:`mplang_testing.dialect` before they are used.

    Attributes:
        examples: how many random programs are tried per mode.
        slack: within how many seconds a failure has to end everywhere; hosts wait twice as long
            for a message, where nothing else is said.
        big: bytes of the big value.

    Example:
        >>> from mplang_simulator import Simulator
        >>> class TestSimulator(BackendSuite):
        ...     def make(self, cluster):
        ...         return Simulator(cluster)
    """

    examples: ClassVar[int] = 50
    slack: ClassVar[float] = DEADLINE / 2
    big: ClassVar[int] = 16 << 20

    def make(self, cluster: ClusterSpec) -> SimpHost:
        """Return a host whose workers are up; it waits longer for a message than ``slack``."""
        raise NotImplementedError("a BackendSuite gives make(self, cluster)")

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the modes, and the numbers of parties."""
        return {
            "mode": {"standard": "standard", "launch": "launch"},
            "parties": {str(n): n for n in range(1, 6)},
        }

    # -- what programs mean

    def test_every_construct_means_what_it_says(self, parties: int, mode: Mode) -> None:
        """Calls, shuffles, convergence, branches and loops, among one to five parties."""
        ranks = range(parties)
        after = [(rank + 1) % parties for rank in ranks]

        def program(x: Any) -> Any:
            mine = simp.pcall_static(ranks, dialect.rank)
            total = invoke(dialect.add, mine, x)
            own = pconv([constant(rank * 10, parties=rank) for rank in ranks])
            index = pconv([constant(after[rank], parties=rank) for rank in ranks])
            less = invoke(dialect.less, constant(1), constant(2))
            below = lambda i: invoke(dialect.less, i, constant(20))  # noqa: E731
            return {
                "call": total,
                "static": pshfl_s(total, ranks, after),
                "dynamic": pshfl(total, index),
                "converge": own,
                "first": pshfl_s(own, [0], [parties - 1]),
                "cond": uniform_cond(less, lambda: mine, lambda: total),
                "loop": while_loop(below, lambda i: invoke(dialect.mul, i, constant(3)), x),
            }

        expected: dict[str, list[Any]] = {
            "call": [rank + 5 for rank in ranks],
            "static": [after[rank] + 5 for rank in ranks],
            "dynamic": [after[rank] + 5 for rank in ranks],
            "converge": [rank * 10 for rank in ranks],
            "first": [(parties - 1) * 10, *[None] * (parties - 1)],
            "cond": list(ranks),
            "loop": [45] * parties,
        }
        with self._host(parties) as host:
            found = fetch(host, evaluate(host, program, np.int64(5), mode=mode))
        for name, values in expected.items():
            _expect(f"{name} among {parties} in {mode} mode", values, found[name])

    def test_random_programs_agree_with_numpy(self, mode: Mode) -> None:
        """Programs of all constructs, nested, among one to five parties."""
        hosts = {n: self.make(ClusterSpec.simple(n)) for n in self.cases()["parties"].values()}

        def check(program: programs.Program) -> None:
            host = hosts[program.parties]
            found = fetch(host, evaluate(host, programs.build(program), mode=mode))
            _expect(f"a random program in {mode} mode", programs.directly(program), found)

        try:
            for_all(strategies.programs(max_parties=max(hosts)), check, self.examples)
        finally:
            for host in hosts.values():
                host.close()

    def test_a_program_runs_many_times(self, mode: Mode) -> None:
        """What was compiled is what runs, each time; what is kept of it holds no values."""
        traced: list[Any] = []

        def program(x: Any) -> Any:
            traced.append(x)
            return _pass_on(x)

        with self._host(2) as host:
            compiled = compile(program, np.int64(0), cluster_spec=ClusterSpec.simple(2))
            reviewed = compiled.program
            for i in range(5):
                found = fetch(host, evaluate(host, compiled, np.int64(i), mode=mode))
                _expect("the result of a program that ran before", [None, i], found)
        _expect("how often a compiled program was traced", 1, len(traced))
        _expect("the digest of a program that ran", reviewed.digest, compiled.program.digest)

    def test_results_of_one_mode_are_arguments_in_the_other(self) -> None:
        """Values stay at the parties between programs."""
        with self._host(2) as host:
            value: Any = np.int64(1)
            for mode in ("standard", "launch", "standard", "launch"):
                value = evaluate(host, _double, value, mode=mode)
            _expect("a value that went through four programs", [16, 16], fetch(host, value))

    # -- data

    def test_data_is_put_and_fetched_as_it_is(self) -> None:
        """Every element type and shape comes back, from the party that has it alone."""
        with self._host(2) as host:
            for dtype in strategies.dtypes_here:
                for shape in ((), (0,), (2, 3)):
                    array = np.ones(shape, dtype.numpy)
                    placed = evaluate(host, lambda array=array: put("P1", array))
                    _expect(f"{dtype.value}{list(shape)} from P1", array, fetch(host, placed))
                    held = evaluate(host, lambda array=array: constant(array, parties=[1]))
                    _expect("what party 1 alone holds", [None, array], fetch(host, held))

    def test_big_values_travel(self, mode: Mode) -> None:
        """A value of some megabytes goes from party to party, and to the host."""
        big = np.random.default_rng(0).integers(0, 255, self.big, dtype=np.uint8)
        with self._host(2) as host:
            sent = evaluate(host, lambda x: put("P1", put("P0", x)), public(big), mode=mode)
            _expect("a big value", big, fetch(host, sent))

    def test_nobody_can_change_a_value_from_outside(self) -> None:
        """Writing into what was given or fetched does not reach the parties."""
        with self._host(2) as host:
            given = np.zeros(3)
            values = evaluate(host, lambda x: (put("P0", x), _double(put("P0", x))), given)
            given[:] = 7
            for value in (*values, *values):
                found = fetch(host, value)
                _expect("a value that was written to from outside", np.zeros(3), found)
                if found.flags.writeable:
                    found[:] = 8

    def test_values_of_another_host_are_refused(self) -> None:
        """A reference means something at its own host only."""
        with self._host(2) as one, self._host(2) as other:
            value = evaluate(one, lambda: constant(1))
            for use in (lambda: fetch(other, value), lambda: evaluate(other, _double, value)):
                _refuses("a value of another host", TraceError, use)

    # -- failures

    def test_a_failure_names_party_op_and_line(self, mode: Mode) -> None:
        """One party of three fails: one error says who, in which op, from which line; no value."""
        program, line = _as_users(lambda x: invoke(dialect.fail_at, x, party=1))
        with self._host(3) as host:
            error = self._fails(host, program, mode)
        told = (error.rank, error.op, error.location)
        if told != (1, "kit.fail_at", line) or not all(str(part) in str(error) for part in told):
            complain(
                f"a failure is told incompletely in {mode} mode",
                expected=f"rank, op and location are {(1, 'kit.fail_at', line)}, in the text, too",
                got=f"{told}: {error}",
                fix="hand on op and location of the worker's error, and who failed first",
            )
        if dialect.SECRET in str(error):
            complain(
                f"a failure tells the host what is private to a party, in {mode} mode",
                expected="the op, its line and the party",
                got=error,
                fix="send Failure.public of the error",
            )

    def test_a_failure_ends_everywhere(self, mode: Mode) -> None:
        """The others wait for what will never come; they end, and the next program runs."""

        def program(x: Any) -> Any:
            failed = invoke(dialect.fail_at, x, party=1)
            return pshfl_s(failed, [0, 1, 2], [1, 1, 1])

        with self._host(3) as host:
            before = evaluate(host, _double, np.int64(4), mode=mode)
            for _ in range(2):
                self._fails(host, program, mode)
                after = evaluate(host, _double, before, mode=mode)
                _expect("a program after a failure", [16, 16, 16], fetch(host, after))

    def test_a_predicate_that_differs_is_refused(self, mode: Mode) -> None:
        """Parties that would branch apart stop instead."""

        def program(x: Any) -> Any:
            mine = simp.pcall_static([0, 1, 2], dialect.rank)
            lower = invoke(dialect.less, mine, constant(1))
            return uniform_cond(lower, lambda: mine, lambda: x)

        with self._host(3) as host:
            self._fails(host, program, mode)

    # -- being watched

    def test_a_recording_has_the_spans_of_every_party(self, mode: Mode) -> None:
        """Ops and messages of all parties, by one clock, nested as they ran, bytes as in NumPy."""
        value = np.arange(1000.0)
        with self._host(3) as host:
            given = evaluate(host, lambda: constant(value))
            begin = time.time()
            with record(host) as recording:
                fetch(host, evaluate(host, _around, given, mode=mode))
            evaluate(host, _around, given, mode=mode)
            took = time.time() - begin
        spans = recording.spans
        seen = {(span.party, span.name) for span in spans}
        wanted = {(rank, "kit.add") for rank in range(3)} | {(None, "_around")}
        if not wanted <= seen:
            complain(
                f"a recording lacks spans in {mode} mode",
                expected=sorted(map(str, wanted)),
                got=sorted(map(str, seen)),
                fix="ask self._recorder(rank, run) in _submit; give it to the worker's evaluate",
            )
        sent = {link: (use.messages, use.bytes) for link, use in recording.links().items()}
        if sent != {(rank, (rank + 1) % 3): (1, value.nbytes) for rank in range(3)}:
            complain(
                f"a recording counts messages wrongly in {mode} mode",
                expected=f"one of {value.nbytes} bytes from each party to the next",
                got=sent,
                fix="let _send of the communicator return the bytes of the value",
            )
        most = 1 + took  # which clocks may seem to differ: a party is asked for its time meanwhile
        first, last = begin - most, begin + took + most
        late = [span for span in spans if not first < span.begin <= span.end < last]
        if late or not _nested(spans):
            complain(
                f"the spans of a recording do not fit together in {mode} mode",
                expected="times by the host's clock, the spans of a thread nested",
                got=(late or spans)[:10],
                fix="give the difference of the clocks as shift to Recorder.take",
            )

    def test_what_went_over_links_is_counted(self, mode: Mode) -> None:
        """The host knows the bytes and messages of every link, also when nothing is recorded."""
        value = np.arange(1000.0)
        with self._host(3) as host:
            given = evaluate(host, lambda: constant(value))
            evaluate(host, _around, given, mode=mode)
            if not isinstance(host, ObservedHost) or type(host).progress is ObservedHost.progress:
                return  # this backend does not know
            states = host.progress()
        for rank, state in enumerate(states):
            link = state.links.get((rank + 1) % 3)
            if link is None or (link.sent, link.sent_messages) != (value.nbytes, 1):
                complain(
                    f"what party {rank} sent is not known in {mode} mode",
                    expected=f"{value.nbytes} bytes in one message",
                    got=state,
                    fix="have progress() give the traffic() of each party's communicator",
                )

    # -- several at once

    def test_threads_do_not_mix(self, mode: Mode) -> None:
        """Four threads run programs on one host; each gets its own results."""
        with self._host(3) as host, ThreadPoolExecutor(4) as pool:
            compiled = compile(_double, np.int64(0), cluster_spec=ClusterSpec.simple(3))

            def many(start: int) -> None:
                for i in range(start, start + 15):
                    found = fetch(host, evaluate(host, compiled, np.int64(i), mode=mode))
                    _expect("the result of one of several threads", [2 * i] * 3, found)

            for future in [pool.submit(many, start) for start in (0, 100, 200, 300)]:
                future.result(2 * DEADLINE)

    def test_a_failure_in_one_thread_is_its_own(self, mode: Mode) -> None:
        """While programs of one thread fail, those of another run."""
        with self._host(2) as host, ThreadPoolExecutor(2) as pool:

            def fail() -> None:
                for _ in range(5):
                    self._fails(host, lambda x: invoke(dialect.fail_at, x, party=0), mode)

            def succeed() -> None:
                for i in range(15):
                    found = fetch(host, evaluate(host, _double, np.int64(i), mode=mode))
                    _expect("a program beside one that fails", [2 * i] * 2, found)

            for future in [pool.submit(fail), pool.submit(succeed)]:
                future.result(2 * DEADLINE)

    def test_hosts_do_not_meet(self) -> None:
        """Two hosts at once are two clusters."""
        with self._host(2) as one, self._host(2) as other, ThreadPoolExecutor(2) as pool:

            def many(host: SimpHost, start: int) -> None:
                for i in range(start, start + 10):
                    found = fetch(host, evaluate(host, _pass_on, np.int64(i)))
                    _expect("the result of one of two hosts", [None, i], found)

            for future in [pool.submit(many, one, 0), pool.submit(many, other, 100)]:
                future.result(2 * DEADLINE)

    # -- its end

    def test_a_closed_host_refuses(self) -> None:
        """Leaving ``with`` closes it; once more does nothing; what is asked then is refused."""
        before = set(threading.enumerate())
        with self._host(2) as host:
            evaluate(host, lambda: constant(1))
        host.close()
        _refuses("a program on a closed host", MPLangError, lambda: evaluate(host, _constant))
        left: set[threading.Thread] = set()

        def ended() -> bool:
            nonlocal left
            left = set(threading.enumerate()) - before
            return not left

        try:
            wait_until(ended)
        except AssertionError:
            complain(
                "closing a host leaves threads behind",
                expected="no thread that was not there before",
                got=sorted(thread.name for thread in left),
                fix="stop in close() what was started in __init__",
            )

    # --

    @contextmanager
    def _host(self, parties: int) -> Iterator[SimpHost]:
        host = self.make(ClusterSpec.simple(parties))
        if not isinstance(host, SimpHost) or host.world_size != parties:
            complain(
                "make() gives no host of the cluster",
                expected=f"a SimpHost of {parties} parties",
                got=host,
                fix="return the backend's host",
            )
        with host:
            yield host

    def _fails(self, host: SimpHost, program: Callable[..., Any], mode: Mode) -> PartyError:
        begin = time.monotonic()
        try:
            got: Any = fetch(host, evaluate(host, program, np.int64(5), mode=mode))
        except PartyError as error:
            took = time.monotonic() - begin
            if took > self.slack:
                complain(
                    f"a failure takes long to end everywhere in {mode} mode",
                    expected=f"within {self.slack:g} seconds",
                    got=f"{took:.1f} seconds",
                    fix="have the communicator's abort reach all parties",
                )
            return error
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        return complain(
            f"a party's failure does not end in a PartyError in {mode} mode",
            expected="PartyError",
            got=got,
            fix="have _collect give each party's error, and leave the rest to SimpHost.submit",
        )


def _around(x: Any) -> Any:
    return pshfl_s(invoke(dialect.add, x, x), [0, 1, 2], [2, 0, 1])


def _nested(spans: Sequence[Span]) -> bool:
    """Return whether the spans of each thread are nested; they come ordered by begin."""
    open_: dict[tuple[int | None, int], list[float]] = {}
    for span in spans:
        around = open_.setdefault((span.party, span.thread), [])
        while around and around[-1] <= span.begin:
            around.pop()
        if around and span.end > around[-1]:
            return False
        around.append(span.end)
    return True


def _double(x: Any) -> Any:
    return invoke(dialect.add, x, x)


def _constant() -> Any:
    return constant(1)


def _pass_on(x: Any) -> Any:
    return pshfl_s(pshfl_s(x, [0], [1]), [1], [0])


def _as_users(fn: Any) -> tuple[Callable[..., Any], str]:
    """Return a function as if it stood in a user's file, and its line: the kit's are skipped."""
    user = types.FunctionType(fn.__code__, {**fn.__globals__, "__name__": "kit_user"})
    return user, str(Location(fn.__code__.co_filename, fn.__code__.co_firstlineno))


def _expect(what: str, expected: Any, got: Any) -> None:
    mine = expected if isinstance(expected, list) else [expected]
    theirs = got if isinstance(expected, list) else [got]
    same = (
        isinstance(theirs, list)
        and len(mine) == len(theirs)
        and all(
            (a is None) == (b is None)
            and (a is None or (np.array_equal(a, b) and _dtype(a) == _dtype(b)))
            for a, b in zip(mine, theirs, strict=True)
        )
    )
    if not same:
        complain(
            f"{what} is wrong",
            expected=f"{expected!r:.300}",
            got=f"{got!r:.300}",
            fix="run every op by the kernels of its role, on the values of this run and party",
        )


def _dtype(value: Any) -> Any:
    return np.asarray(value).dtype


def _refuses(what: str, expected: type[Exception], use: Callable[[], Any]) -> None:
    try:
        got: Any = use()
    except expected:
        return
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    complain(f"{what} is not refused", expected=expected.__name__, got=got, fix="refuse it")
