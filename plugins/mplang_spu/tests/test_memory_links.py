"""Links in memory, as a simulator has them: failures, deadlines, Ctrl-C, and the process's exit."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import spu.libspu as libspu
from mplang_spu.engine import Engine
from mplang_spu.link import LinkCommunicator
from mplang_spu.process_exit import INTERRUPTED
from mplang_testing.waiting import DEADLINE, in_time, pause
from spu_links import at_all, check, cluster

import mplang_core as mp
from mplang_core.errors import PartyError, RecvTimeoutError

pytestmark = [
    pytest.mark.once,  # it is about links
    pytest.mark.usefixtures("environment"),
]


# -- failures


class Trouble:
    """Has one party do something in the place of its part of a job."""

    def __init__(self, monkeypatch, rank, act):
        run = Engine.run

        def troubled(engine, *args):
            if threading.current_thread().name == f"mplang-P{rank}" and self.on:
                act()
            return run(engine, *args)

        self.on = False
        monkeypatch.setattr(Engine, "run", troubled)
        monkeypatch.setattr(libspu.link, "create_with_channels", None)


def fail():
    pause(0.2, "work of SPU, for which the others wait")
    raise OSError("unplugged")


@pytest.mark.parametrize(("parties", "protocol"), [(2, "SEMI2K"), (3, "ABY3")])
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("standard", marks=pytest.mark.long("three runs on SPU, one of which fails")),
        "launch",
    ],
)
def test_a_party_that_fails_within_spu_ends_the_run_in_time(monkeypatch, mode, parties, protocol):
    trouble = Trouble(monkeypatch, parties - 1, fail)
    with mp.Simulator(cluster(parties, protocol=protocol), timeout=2 * DEADLINE) as sim:
        check(sim, mode)
        trouble.on = True
        with in_time(), pytest.raises(PartyError) as error:  # earlier than a link gives up
            check(sim, mode)
        assert f"party {parties - 1} failed in spu.run_jax" in str(error.value)
        assert "spu_links.py:" in str(error.value)
        trouble.on = False
        check(sim, mode)


def test_a_party_that_is_late_within_spu_is_named(monkeypatch):
    told = threading.Event()
    trouble = Trouble(monkeypatch, 1, lambda: told.wait(DEADLINE))
    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)
        for worker in sim._parties.workers:
            worker.resources.clear()
            worker.timeout = 3.0  # of the next link; those of the run after it wait longer again
        trouble.on = True
        with pytest.raises(PartyError) as error:
            check(sim)
        trouble.on = False
        told.set()
        assert "P0 waited 3 s for a message of SPU from P1" in str(error.value)
        assert "spu_links.py:" in str(error.value)
        check(sim)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("channel_mem.cc:53] Get data timeout, key=x:P2P-3:1->0\nstacktrace:", "SPU from P1; it"),
        ("Get data timeout, key=x:ALLGATHER", "SPU; it"),
    ],
)
def test_a_timeout_of_libspu_is_one_of_mplang(what, expected):
    first, _ = at_all(
        2, lambda i: LinkCommunicator(i, ["P0", "P1"], mem_link=True, name=expected, timeout=7)
    )
    found = first.timeout_of(RuntimeError(what))
    assert isinstance(found, RecvTimeoutError)
    assert str(found).startswith(f"P0 waited 7 s for a message of {expected}")
    assert first.timeout_of(RuntimeError("out of range")) is None


# -- exit

SCRIPT = """
import os, signal, sys, threading
import jax.numpy as jnp
import numpy as np
import mplang_core as mp
from mplang_spu import process_exit
from mplang_spu.engine import Engine
from mplang_testing.waiting import NEVER, pause, wait_until
from spu_links import cluster

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background
run, began, told = Engine.run, threading.Barrier(4), threading.Event()

def watched(engine, *args):
    began.wait()
    {instead}
    found = run(engine, *args)
    told.wait()  # a fast machine would be done before it is interrupted
    return found

def interrupt():
    began.wait()
    pause(0.2, "until libspu computes")
    os.kill(os.getpid(), signal.SIGINT)

def codes(frame):
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back

def waits_at_exit():
    found = list(codes(sys._current_frames()[threading.main_thread().ident]))
    return process_exit._wait.__code__ in found and threading.Condition.wait.__code__ in found

def again():
    wait_until(waits_at_exit)
    os.kill(os.getpid(), signal.SIGINT)

sim = mp.Simulator(cluster(3, {config}), mode="launch", check_numbers=False, timeout={timeout})
with mp.with_ctx(sim):
    x = mp.put("P0", np.random.rand(50_000))
sealed = mp.evaluate(sim, lambda x: mp.seal(x, "SP0"), x)
Engine.run = watched
threading.Thread(target={meanwhile}, daemon=True).start()
try:
    mp.evaluate(sim, lambda x: mp.device("SP0")(lambda x: (jnp.sqrt(x) / x).sum())(x), sealed)
except (KeyboardInterrupt, mp.errors.PartyError) as error:
    print(type(error).__name__, flush=True)
    if {again}:
        threading.Thread(target=again, daemon=True).start()
    else:
        told.set()
{at_end}
"""

SLOW_EXIT = """
class Late:
    def __del__(self, pause=pause):
        pause(7, "no link waits any more")  # without Python's lock

late = Late()
"""


def ends(config='protocol="ABY3"', **more):
    """Return how a process ends whose run was interrupted, or failed at a party."""
    usual = {"instead": "", "meanwhile": "interrupt", "again": False, "timeout": "NEVER"}
    script = SCRIPT.format(config=config, **usual | {"at_end": ""} | more)
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE,  # earlier than a link gives up
        cwd=Path(__file__).parent,
    )
    return process.returncode, process.stdout.split()[-1:], process.stderr


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("", marks=pytest.mark.long("a process imports JAX and libspu")),
        ", use_mplang_channel=True",
    ],
)
def test_ctrl_c_within_spu_raises_and_the_process_ends_in_order(way):
    assert ends(f'protocol="ABY3"{way}') == (0, ["KeyboardInterrupt"], "")


UNPLUGGED = {
    "instead": "if threading.current_thread().name == 'mplang-P2': raise OSError('unplugged')",
    "meanwhile": "began.wait",
}


@pytest.mark.long("a process imports JAX and libspu")
def test_members_that_wait_for_one_that_failed_do_not_keep_the_process():
    assert ends(**UNPLUGGED) == (0, ["PartyError"], "")


def test_members_whose_wait_is_over_while_the_process_exits_do_not_abort_it():
    found = ends(**UNPLUGGED, timeout=6.0, at_end=SLOW_EXIT)
    assert found == (0, ["PartyError"], "")


def test_a_second_ctrl_c_ends_the_process():
    code, told, _ = ends(again=True)
    assert (code, told) == (INTERRUPTED, ["KeyboardInterrupt"])
