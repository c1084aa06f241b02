"""Errors of certificates say that a clock may be wrong, where that may be why."""

from __future__ import annotations

import datetime
import socket
import threading

import pytest
from authority import DAY, TestAuthority
from mplang_http.coordinator.client import WorkerClient
from mplang_http.ext import client_context, server_context
from mplang_testing.waiting import DEADLINE

from mplang_core.errors import RunError

EARLIER = -3 * DAY
CASES = {
    "the worker's begins tomorrow": ({"begins": DAY}, {}, "the clock of this machine is wrong"),
    "the worker's has ended": (
        {"begins": EARLIER, "lasts": -DAY}, {}, "the clock of this machine is wrong",
    ),
    "the coordinator's has ended": (
        {}, {"begins": EARLIER, "lasts": -DAY}, "by its clock",
    ),
}  # fmt: skip


def refused_by(tmp_path, of_worker, of_coordinator):
    """Return the error of a coordinator that asks a worker, with such certificates."""
    authority = TestAuthority(tmp_path / "keys")
    mine, theirs = authority.issue("bank", **of_worker), authority.issue("host", **of_coordinator)
    context = server_context(mine)

    def serve(listening):
        sock, _ = listening.accept()
        try:
            with context.wrap_socket(sock, server_side=True) as tls:
                tls.recv(1)
        except OSError:
            sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=[listening])
        thread.start()
        address = f"https://127.0.0.1:{listening.getsockname()[1]}"
        client = WorkerClient("bank", address, client_context(theirs), DEADLINE)
        try:
            with pytest.raises(RunError) as caught:
                client.request("GET", "v1", "worker")
        finally:
            client.close()
            thread.join()
    return str(caught.value)


@pytest.mark.parametrize("case", CASES)
def test_who_is_refused_is_told_to_look_at_a_clock(tmp_path, case):
    """It said ``certificate is not yet valid`` alone, where a clock was ten minutes behind."""
    of_worker, of_coordinator, hint = CASES[case]
    found = refused_by(tmp_path, of_worker, of_coordinator)
    assert hint in found.replace("the clock of the worker", "its clock")
    if "this machine" in hint:  # with what it says
        assert datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT") in found


def test_other_failures_say_nothing_of_clocks(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"https://127.0.0.1:{listening.getsockname()[1]}"
    files = TestAuthority(tmp_path / "keys").issue("host")
    client = WorkerClient("bank", address, client_context(files), DEADLINE)
    with pytest.raises(RunError) as caught:
        client.request("GET", "v1", "worker")
    assert "clock" not in str(caught.value)
