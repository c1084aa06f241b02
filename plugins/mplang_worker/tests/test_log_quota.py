"""A worker's own log has a quota of each coordinator: what its engines print, and the front."""

from __future__ import annotations

import numpy as np
import pytest
from http_raw import RawWorker, program
from mplang_http.tls.contexts import client_context
from mplang_testing.waiting import wait_until
from mplang_worker.front.log_quota import STRANGERS, LogQuota
from two_coordinators import certificates, worker_of_two

import mplang_core as mp

MOST = 80_000  # bytes
FLOOD = "import os\nfor i in range(40): os.write(2, (b'%d ' % i + b'x' * 9000 + b'\\n') * 10)"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["text", "json"])
def alice(request, files, tmp_path):
    """Return a worker of two coordinators, and the text of its log."""
    options = {"log": str(tmp_path), "log_level": "info", "log_format": request.param}
    with worker_of_two(files, quotas={"log": MOST}, **options) as cluster:
        yield cluster, lambda: (tmp_path / "alice.log").read_text()


def of(cluster, files, name):
    return RawWorker(cluster, 0, client_context(files[name], "http/1.1"))


def told(name):
    return f"{name} has caused"


def test_a_coordinator_whose_engines_print_without_end_has_no_more_lines(alice, files):
    import intruder

    cluster, log = alice
    noisy = program(lambda x: mp.invoke(intruder.run, x, code=FLOOD), np.int64(0))
    host = of(cluster, files, "host")
    for _ in range(2):  # of two engines
        assert host.run(noisy, np.int64(0)).status == 200
    wait_until(lambda: told("host") in log(), "the log says that lines are left out")
    assert len(log()) < MOST + 5000
    assert log().count(told("host")) == 1
    assert log().count("x" * 9000) > 1
    with of(cluster, files, "other").opened():
        wait_until(lambda: "a session of other is open" in log())


@pytest.mark.long("sends a thousand requests")
def test_a_coordinator_that_is_refused_without_end_has_no_more_lines(alice, files):
    cluster, log = alice
    host = of(cluster, files, "host")

    def is_full_after(ask) -> bool:
        for _ in range(40):
            ask()
        return " has caused" in log()[before:]

    def refused():
        assert host.ask("GET", f"/v1/sessions/{'n' * 120}/jobs").status == 404

    before = len(log())
    wait_until(lambda: is_full_after(refused), "the log says that lines are left out")
    assert told("host") in log()
    size = len(log())
    for _ in range(10):
        refused()
        with host.opened():
            pass
    assert len(log()) == size
    before = len(log())
    nobody = RawWorker(cluster, 0)
    wait_until(lambda: is_full_after(lambda: nobody.send(b"x" * 9)), "lines are left out")
    assert told(STRANGERS) in log()
    with of(cluster, files, "other").opened():
        wait_until(lambda: "a session of other is open" in log())


def test_a_log_has_its_quota_again_on_the_next_day(caplog):
    now = [1_700_000_000.0]
    quota = LogQuota(100, clock=lambda: now[0])
    assert [quota.take("host", 60) for _ in range(3)] == [True, False, False]
    assert quota.take("other", 60)
    now[0] += 86_400
    assert quota.take("host", 60)
    assert caplog.text.count("host has caused 60 bytes of this log since 00:00 UTC") == 1
