"""A worker whose MPC process sends wrong messages harms nothing but its runs.

Workers with TLS, in production. What libspu does with wrong messages is not in our hands, so that
at the others runs in MPC processes, too: these may end, and others take their place. Engines and
fronts go on, with the values of the session.

These are the attacks that ended engines before there were MPC processes: messages that are wrong
at random, and a number that is added to one message. ``make test-hostile`` has 20 runs of each op
and protocol, and siblings of sorts.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import evil_mpc
import jax.numpy as jnp
import numpy as np
import pytest
from attacked_ops import OPS, X, Y, outcome
from jax import lax
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_testing.waiting import DEADLINE, wait_until
from processes import engine_of, mpc_processes_of

import mplang_core as mp
from mplang_core.errors import PartyError

RUNS = int(os.environ.get("MPLANG_HOSTILE_RUNS", "1"))  # of each op
NAMES = ["bank", "evil", "third"]
WAIT = 5.0  # seconds that a party waits for a message, as some are dropped

pytestmark = [pytest.mark.timeout(300 + 100 * RUNS)]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return the file that says what is wrong in the next run."""
    path = tmp_path_factory.mktemp("evil") / "said"
    path.write_bytes(b" " * evil_mpc.SIZE)
    evil_mpc.say(path)
    return path


@pytest.fixture(scope="module")
def workers(said):
    here = Path(__file__).parent
    paths = [here, here.parents[1] / "mplang_spu/tests", os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, map(str, paths))))
        patch.setenv(evil_mpc.FILE, str(said))
        with LocalCluster(
            NAMES,
            tls=True,
            mode="production",
            imports=("evil_mpc",),
            timeouts={"message": WAIT},
            log=str(said.parent),
        ) as made:
            yield made


def cluster(workers, protocol: str) -> mp.ClusterSpec:
    members = NAMES if protocol == "ABY3" else NAMES[:2]
    devices = {f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate(NAMES)}
    devices["SP0"] = {"kind": "SPU", "members": members, "config": {"protocol": protocol}}
    nodes = [{"name": node.name, "address": node.address} for node in workers.spec.nodes]
    return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})


def ended(workers) -> Counter[str]:
    """Return how many processes of each worker's sessions have ended by themselves so far."""
    rows = cluster_status(workers.spec, workers.tls)
    return Counter({row["name"]: row["crashes"] for row in rows})


@contextlib.contextmanager
def unharmed(workers):
    """Check that all engines and fronts are the same afterwards."""
    engines = [engine_of(worker.pid) for worker in workers.workers]
    yield
    assert [engine_of(worker.pid) for worker in workers.workers] == engines
    assert [worker.poll() for worker in workers.workers] == [None] * len(NAMES)


PLACES = (
    r"(; party \w+(, party \w+)* ((is|are) not observable, so their ops are unknown"
    r"|(was|were) in spu\.run_jax at \w+\.py:\d+ then))*"
)
WHY = (
    r"the reason is in that party's log, at log_level: debug",
    r"party {rank} waited {wait:g} s for a message from party [{others}], which is not known to be "
    r"at work; timeouts\.message of workers, or timeout= of mp\.connect, sets the limit"
    rf"{PLACES}",
    r"party {rank} has lost its link to the MPC process of party [{others}] \(\w+\): [\w ]+"
    rf"{PLACES}",
    rf"the MPC process of worker {{name}} ended{PLACES}",
)

NOT_BEGUN = (
    rf"party {{name}} failed: the MPC process of worker {{name}} ended{PLACES}"  # it had hung
)


def told_exactly(members, error) -> None:
    """Assert that an error names the op, its line, the member that failed, why, and others."""
    others = set(members) - {error.rank}
    if error.op != "spu.run_jax":  # it failed before it began
        assert re.fullmatch(NOT_BEGUN.format(name=NAMES[error.rank]), str(error)), error
        return
    assert error.rank in members, error
    why = "|".join(WHY).format(
        rank=error.rank, name=NAMES[error.rank], others="".join(map(str, others)), wait=WAIT
    )
    head = rf"party {NAMES[error.rank]} failed in spu\.run_jax at \w+\.py:\d+: "
    assert re.fullmatch(f"{head}({why})", str(error)), error
    named = re.findall(r"; (party \w+(?:, party \w+)*) ", str(error))
    found = [NAMES.index(each) for text in named for each in re.findall(r"party (\w+)", text)]
    assert len(set(found)) == len(found), error
    # one that is not a member has no op, and who has ended well is not named
    assert set(found) <= set(range(len(NAMES))) - {error.rank}, error


def failures_until_it_works(workers, host, kept, check) -> int:
    """Run a program on values that were kept until it gives the right numbers.

    A process that wrong messages have harmed may end only now; then another one serves the next
    run.

    Returns:
        How many runs failed before, of which each has ended a process.
    """
    double = lambda x: mp.reveal(mp.device("SP0")(lambda x: x * 2)(x), to="P0")  # noqa: E731
    before = ended(workers)
    for failures in range(len(NAMES) + 1):
        try:
            found = mp.fetch(host, mp.evaluate(host, double, kept))
        except PartyError as error:
            check(error)
            continue
        np.testing.assert_allclose(found, X * 2, atol=1e-2)
        assert failures <= (ended(workers) - before).total()
        return failures
    raise AssertionError("no run works any more")


def tell(told, workers, before) -> None:
    for (name, what), count in sorted(told.items()):
        print(f"  {name}: {what} {count}")
    print(f"  MPC processes that ended: {dict(ended(workers) - before)}")


@pytest.mark.parametrize("protocol", ["ABY3", "CHEETAH"])
def test_wrong_messages_end_at_most_their_run(workers, said, protocol):
    """Messages are wrong at random; in each second turn also while links are set up anew."""
    told, before = Counter(), ended(workers)
    names = list(OPS) if RUNS > 1 else ["sort", "bools"]
    members = range(3 if protocol == "ABY3" else 2)
    check = functools.partial(told_exactly, members)
    with mp.connect("http", cluster(workers, protocol), tls=workers.tls) as host:
        with mp.with_ctx(host):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        kept = mp.evaluate(host, lambda x: mp.seal(x), x)
        with unharmed(workers):
            for turn, name in itertools.product(range(RUNS), names):
                evil_mpc.say(said, "at random", seed=turn * len(OPS) + names.index(name))
                told[name, outcome(host, name, kept, y, check)] += 1
                evil_mpc.say(said)
                if turn % 2 == 0 or name == names[-1]:
                    told["next", "failed"] += failures_until_it_works(workers, host, kept, check)
    print(f"{protocol}: {RUNS * len(names)} runs")
    tell(told, workers, before)


SORTS = {
    "sort": jnp.sort,
    "argsort": jnp.argsort,
    "ranks": lambda x: jnp.argsort(jnp.argsort(x)),
    "largest": lambda x: lax.top_k(x, 3)[0],
    "payload": lambda x: lax.sort((x, x * 2), num_keys=1)[1],
}
LAST = 206
ATTACKS = [("sort", number, 1 << 40) for number in (199, 200)] * 5
if RUNS > 1:
    ATTACKS = itertools.product(SORTS, range(LAST - 8, LAST), (20, 2000, 1 << 40))
Z = np.arange(12)[::-1]


def test_an_index_that_a_peer_changes_ends_at_most_an_mpc_process(workers, said):
    """A sort on ABY3 opens indices that all members make; libspu reads and writes memory by them.

    ``LAST`` messages go to the first party; the last ones are of the opening of an index.
    """
    told, before = Counter(), ended(workers)
    check = functools.partial(told_exactly, range(3))
    for name, number, added in ATTACKS:
        if RUNS == 1 and ended(workers) != before:
            break  # that it was once is enough
        program = lambda z, name=name: mp.reveal(mp.device("SP0")(SORTS[name])(z), to="P1")  # noqa: E731
        with mp.connect("http", cluster(workers, "ABY3"), tls=workers.tls) as host:
            with mp.with_ctx(host):
                x, z = mp.put("P0", X), mp.put("P0", Z)
            kept, z = mp.evaluate(host, lambda *xs: tuple(map(mp.seal, xs)), x, z)
            with unharmed(workers):
                evil_mpc.say(said, "added", to_rank=0, number=number, added=added)
                try:
                    found = mp.fetch(host, mp.evaluate(host, program, z))
                    right = np.array_equal(found, np.asarray(SORTS[name](Z)))
                    told[name, "right" if right else "wrong"] += 1
                except PartyError as error:
                    check(error)
                    told[name, "failed"] += 1
                evil_mpc.say(said)
                told["next", "failed"] += failures_until_it_works(workers, host, kept, check)
    assert ended(workers) != before, "libspu was attacked"
    tell(told, workers, before)


@pytest.mark.parametrize("locked", [0, 1], ids=["it waits", "it holds Python's lock"])
def test_a_process_that_hangs_after_its_run_was_aborted_is_replaced(workers, said, locked):
    """The session goes on with its values, without the coordinator's help.

    Who waits is known to be at work, so its run lasts until somebody aborts it; who holds Python's
    lock is not.
    """
    check = functools.partial(told_exactly, range(3))
    with mp.connect("http", cluster(workers, "ABY3"), tls=workers.tls) as host:
        with mp.with_ctx(host):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        kept = mp.evaluate(host, lambda x: mp.seal(x), x)
        before = ended(workers)
        with unharmed(workers):
            evil_mpc.say(said, "stuck", locked=locked)
            if locked:
                assert outcome(host, "compare", kept, y, check) == "failed"
            else:
                with interrupted_when(lambda: is_stuck(workers)), pytest.raises(KeyboardInterrupt):
                    outcome(host, "compare", kept, y, check)
            evil_mpc.say(said)
            failures_until_it_works(workers, host, kept, check)
        assert ended(workers) - before == {"evil": 1}


@contextlib.contextmanager
def interrupted_when(condition: Callable[[], bool]) -> Iterator[None]:
    """Interrupt this thread, as Ctrl-C does, once a condition holds."""
    main = threading.get_ident()

    def interrupt() -> None:
        wait_until(condition)
        signal.pthread_kill(main, signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(interrupt)
        yield
        done.result(DEADLINE)


def is_stuck(workers) -> bool:
    """Return whether a thread of the evil MPC process hangs."""
    evil = workers.workers[NAMES.index("evil")].pid
    names = [
        path.read_text().strip()
        for pid in mpc_processes_of(evil)
        for path in Path(f"/proc/{pid}/task").glob("*/comm")
    ]
    return evil_mpc.STUCK in names


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        pytest.param(
            error,
            begins,
            id=f"{evil_mpc.ERRORS[error]} {'before' if begins else 'in'} an op",
            marks=[pytest.mark.long("each error at both times")] * (error % 2 != begins),
        )
        for error in range(len(evil_mpc.ERRORS))
        for begins in (1, 0)
    ],
)
def test_what_a_process_tells_of_its_failure_does_not_reach_the_coordinator(
    workers, said, error, begins
):
    """Whoever has taken it over has shares, and would send them as a text, run after run."""
    with mp.connect("http", cluster(workers, "ABY3"), tls=workers.tls) as host:
        with mp.with_ctx(host):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        kept = mp.evaluate(host, lambda x: mp.seal(x), x)
        told = []
        with unharmed(workers):
            evil_mpc.say(said, "tells", error=error, begins=begins)
            assert outcome(host, "compare", kept, y, told.append) == "failed"
            evil_mpc.say(said)
            failures_until_it_works(workers, host, kept, lambda error: None)
        assert told[0].rank == 1, told
        assert "the reason is in that party's log" in str(told[0])
        assert evil_mpc.SECRET not in str(told[0])
