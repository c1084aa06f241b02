"""In JSON each line that a worker prints is an object, and each event has one line."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
from http_raw import RawWorker
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.logs import configure_logging, json_event
from mplang_worker.process.forks import ForkServer

import mplang_core as mp
from mplang_core.errors import PartyError

NOISY = '''
import ctypes, logging, os, sys, threading, warnings

import mplang_core as mp

print("printed at import")
warnings.warn("a warning at import")
logging.getLogger("noisy").warning("logged at import")
os.write(2, b"native one\\nnative two\\n")


class Dropped:
    def __del__(self):
        raise ValueError("raised by a finalizer")


@mp.simple_op("noisy.run")
def run(x: mp.TensorType, *, what: str) -> mp.TensorType:
    """Makes noise."""
    return x


@mp.kernel("noisy.run")
def _run(ctx, x, *, what):
    if what == "crash":
        ctypes.string_at(0)
    if what == "fail":
        1 / 0
    print("printed by a kernel", flush=True)
    warnings.warn("a warning of a kernel")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    Dropped()
    os.write(2, b\'{"message": 1e999}\\n\')
    return x
'''


@contextlib.contextmanager
def worker_of(folder, *options, **streams):
    """Run a worker as a service does, and yield its process."""
    (folder / "noisy.py").write_text(NOISY)
    (folder / "alice.yaml").write_text("{name: alice, imports: [noisy]}")
    command = [sys.executable, "-P", "-m", "mplang_cli.cli", "worker", "-c", "alice.yaml"]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    process = subprocess.Popen(
        [*command, *options], cwd=folder, env=env, stdin=subprocess.DEVNULL, text=True, **streams
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def events(text):
    found = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    for event in found:
        assert {"time", "level", "logger", "message", "party"} <= set(event), event
        assert event["party"] == "alice"
    return found


def test_every_line_is_an_object_and_every_event_has_one(tmp_path, monkeypatch):
    with worker_of(tmp_path) as process:
        first = process.stdout.readline()
        (at,) = events(first)
        assert at["message"] == f"worker alice at {at['address']}"
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.warns(UserWarning, match="at import"):
            import noisy

        cluster = mp.ClusterSpec([{"name": "alice", "address": at["address"]}])
        raw = RawWorker(types.SimpleNamespace(spec=cluster))
        raw.send(b"GET nonsense\r\n\r\n")
        assert raw.ask("GET", "/no/such/page").status == 404

        def act(what):
            mp.evaluate(host, lambda x: mp.invoke(noisy.run, x, what=what), np.int64(1))

        with mp.connect("http", cluster) as host:
            act("be noisy")
            for what in ("fail", "crash"):
                with pytest.raises(PartyError):
                    act(what)
        # the end of an engine is logged after the coordinator is told
        wait_until(lambda: raw.ask("GET", f"/v1/sessions/{host.session}").status == 404)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
    told = [*events(out), *events(err)]

    def one(text, where="message"):
        (found,) = [event for event in told if text in str(event.get(where))]
        return found

    for text in ("printed at import", "a warning at import", "logged at import"):
        assert one(text)["session"] is None
    assert "native one\nnative two" in one("native one")["message"]
    assert one("printed by a kernel")["session"] == host.session
    assert one("a warning of a kernel")["logger"] == "py.warnings"
    assert "ZeroDivisionError" in one("in <lambda>", "error")["error"]
    assert one("raised by a finalizer", "error")["level"] == "critical"
    assert "Segmentation fault" in one("Current thread 0x")["message"]
    assert one("failed in noisy.run")["run"] == f"{host.session}-1"
    assert one("is closed: the engine of worker alice ended by SIGSEGV")["level"] == "error"
    assert one("SIGTERM: no new sessions")
    names = ("session", "run", "message", "error")
    counts = collections.Counter(tuple(map(event.get, names)) for event in told)
    assert [found for found, count in counts.items() if count > 1] == []


def test_at_a_terminal_it_is_text_for_people(tmp_path):
    terminal, end = pty.openpty()
    with worker_of(tmp_path, stderr=end) as process:
        lines = []
        while not lines or not lines[-1].startswith("worker alice at http://127.0.0.1:"):
            lines.append(process.stdout.readline())
            assert lines[-1]
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 0
    os.close(end)
    os.close(terminal)


def test_uncaught_exceptions_and_what_is_told_at_any_level(capfd):
    """In a process of its own, as the hooks are of the whole interpreter."""
    code = (
        "import asyncio, threading, warnings\n"
        "from mplang_worker.base.logs import configure_logging\n"
        "configure_logging('alice', 'json', 'error')\n"
        "async def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    loop.call_soon(lambda: 1 / 0)\n"
        "    over = loop.create_future()\n"
        "    loop.call_soon(over.set_result, None)\n"
        "    await over\n"
        "asyncio.run(main())\n"
        "raise RuntimeError('two\\nlines')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    first, second = events(done.stderr)
    assert "ZeroDivisionError" in first["error"]
    assert "two\nlines" in second["error"]
    (line,) = events(json_event("alice", "hello", address="x"))
    assert (line["message"], line["address"], line["level"]) == ("hello", "x", "info")


def test_a_server_that_is_captured_prints_nothing_here(capfd):
    server = ForkServer("this", captured=True)  # prints a poem when it is imported
    assert b"Beautiful is better" in os.read(server.output, 4096)
    server.close()
    assert server.output is None
    assert capfd.readouterr() == ("", "")


def test_text_after_json_is_text(capsys):
    hook = sys.excepthook
    configure_logging(None, "json", "info")
    configure_logging("alice", "text", "info")
    assert sys.excepthook is sys.__excepthook__
    sys.excepthook = hook
