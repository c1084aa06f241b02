"""A host that nobody closes: it prints nothing at exit, and its session ends at the workers."""

from __future__ import annotations

import subprocess
import sys

import httpx
from mplang_http import LocalCluster
from mplang_testing.waiting import DEADLINE, NEVER

SCRIPT = """
import mplang_core as mp

host = mp.connect("http", mp.ClusterSpec.from_dict({description!r}))
print(mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7))))
print(host.session)
{then}
"""


def test_a_host_that_is_never_closed_ends_its_session():
    with LocalCluster(2, timeouts={"lease": NEVER}) as local:
        for then, ended in (("", True), ("import os; os._exit(0)", False)):
            script = SCRIPT.format(
                description=local.spec.model_dump(), then=f"import sys; sys.stdout.flush(); {then}"
            )
            done = subprocess.run(
                [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
            )
            assert (done.returncode, done.stderr) == (0, "")
            result, session = done.stdout.split("\n")[:2]
            assert result == "[array(7), array(7)]"
            for node in local.spec.nodes:
                path = f"{node.address}/v1/sessions/{session}"
                found = httpx.get(path, timeout=DEADLINE).status_code
                assert (found != 200) == ended  # whoever just dies leaves it to the lease
