"""What the rules of waiting find, and what they leave alone."""

from __future__ import annotations

import pytest
from waiting_rules import findings

FOUND = [
    "time.sleep(1)",
    "await asyncio.sleep(0.1)",
    "code = 'import time; time.sleep(5)'",
    "sock.bind(('127.0.0.1', 8080))",
    "Server(port=8080)",
    "address = 'http://localhost:8080'",
    "future.result(5)",
    "future.result(timeout=0.5)",
    "assert event.wait(1)",
    "process.communicate(timeout=3)",
    "await asyncio.wait_for(task, 2)",
    "assert time.monotonic() - begin < 1",
    "while time.monotonic() < deadline: pass",
    "took = time.perf_counter() - begin\nassert took < 1",
    "took = time.perf_counter() - begin\nassert 1 >= took",
]
LEFT = [
    "wait_until(lambda: ready)",
    "await asyncio.sleep(0)",
    "sock.bind(('127.0.0.1', 0))",
    "address = 'http://localhost:99999'",
    "future.result(DEADLINE)",
    "future.result(30)",
    "process.wait(0)",
    "', '.join(names)",
    "assert time.monotonic() - begin > 1",
    "simulate(3, timeout=0.2)",
]


@pytest.mark.parametrize("source", FOUND)
def test_what_depends_on_time_is_found(source):
    assert [line for line, _ in findings(source)] == [source.count("\n") + 1]


@pytest.mark.parametrize("source", LEFT)
def test_what_does_not_is_left_alone(source):
    assert list(findings(source)) == []
