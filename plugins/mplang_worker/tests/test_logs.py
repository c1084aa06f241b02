"""Log tests: party, session, run and op of each line; private details in the log only."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from log_reading import LogReader
from mplang_cli.cli import app
from mplang_http import LocalCluster
from mplang_http.coordinator.client import RefusedError, WorkerClient
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.logs import configure_logging
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

KIT = ("mplang_testing.dialect",)


def fails(x):
    return mp.invoke(dialect.fail_at, x, party=1)


def session(log, parties=2, **options):
    """Run two programs, one of which fails; return both logs, the session and the error."""
    options = {"imports": KIT, "log": str(log), "log_level": "debug", **options}
    with LocalCluster(parties, **options) as cluster:
        with mp.connect("http", cluster.spec) as host:
            mp.evaluate(host, lambda x: mp.pshfl_s(x, [0, 1], [1, 0]), np.int64(1))
            with pytest.raises(PartyError) as caught:
                mp.evaluate(host, fails, np.int64(1))
            # a job ends before its last line is logged
            for name, last in (("node0", "is done after"), ("node1", "why it failed")):
                LogReader(log / f"{name}.log", begin=0).wait_for(last)
        node = cluster.spec.nodes[0]
        client = WorkerClient(node.name, node.address, None, DEADLINE)
        with pytest.raises(RefusedError, match="no session"):
            client.request("GET", "v1", "sessions", "nobody", "jobs")
        client.close()
        name = host.session
    return (log / "node0.log").read_text(), (log / "node1.log").read_text(), name, caught.value


def test_json_lines_name_party_session_run_and_op(tmp_path):
    *logs, name, error = session(tmp_path, log_format="json")
    first, second = ([json.loads(line) for line in log.splitlines()] for log in logs)
    for party, lines in (("node0", first), ("node1", second)):
        assert {line["party"] for line in lines} == {party}
        assert all(line["time"].startswith("20") and line["level"] for line in lines)
        told = [line for line in lines if line["session"] == name]
        messages = [line["message"] for line in told]
        assert messages[0] == f"a session of local is open, as party {party[-1]} of 2"
        assert any(message.startswith("the session of local is closed") for message in messages)
        assert any(
            line["run"] == f"{name}-0" and "is done after" in line["message"] for line in told
        )
        assert any("there is a link to" in line["message"] for line in lines)
    (failed,) = [line for line in second if line["message"].startswith("failed in kit.fail_at")]
    assert failed["run"] == f"{name}-1"
    assert failed["level"] == "warning"
    assert dialect.SECRET not in json.dumps(failed)
    (reason,) = [line for line in second if line["message"] == "why it failed"]
    assert (reason["run"], reason["level"]) == (f"{name}-1", "debug")
    assert dialect.SECRET in reason["error"]
    assert dialect.SECRET not in str(error)
    refused = [line["message"] for line in first if "nobody" in line["message"]]
    asked = "GET '/v1/sessions/nobody/jobs' of local is refused: unknown-session"
    assert [asked in message for message in refused] == [True]


def test_text_is_for_people(tmp_path):
    first, second, name, _ = session(tmp_path)
    assert f" INFO node0 [{name}-0] mplang.http.session: " in first
    assert f" WARNING node1 [{name}-1] mplang.http.session: " in second
    assert "Traceback" in second


def test_a_line_names_the_op_that_logs(tmp_path):
    (tmp_path / "chatty.py").write_text(CHATTY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        patch.syspath_prepend(tmp_path)
        import chatty

        options = {"imports": ("chatty",), "log": str(tmp_path), "log_format": "json"}
        with LocalCluster(1, **options) as cluster, mp.connect("http", cluster.spec) as host:
            mp.evaluate(host, lambda x: mp.invoke(chatty.say, x), np.int64(1))
    (line,) = [json.loads(line) for line in (tmp_path / "node0.log").read_text().splitlines()]
    assert line["message"] == "hello"
    assert (line["op"], line["run"], line["level"]) == (
        "chatty.say",
        f"{host.session}-0",
        "warning",
    )


CHATTY = '''
import logging

import mplang_core as mp

@mp.simple_op("chatty.say")
def say(x: mp.TensorType) -> mp.TensorType:
    """Logs a line."""
    return x

@mp.kernel("chatty.say")
def _say(ctx, x):
    logging.getLogger("chatty").warning("hello")
    return x
'''


def test_what_others_write_forges_no_line(capsys):
    kept = logging.getLogger().handlers[:]
    try:
        configure_logging("alice", "text", "warning")
        logging.getLogger("mplang.http").warning("a name: %s", "x\n2026-01-01 ERROR bob: no")
    finally:
        logging.getLogger().handlers[:] = kept
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_workers_are_quiet_where_nothing_is_wrong(tmp_path):
    options = {"imports": KIT, "log": str(tmp_path)}
    with LocalCluster(2, **options) as cluster, mp.connect("http", cluster.spec) as host:
        mp.evaluate(host, lambda x: mp.pshfl_s(x, [0, 1], [1, 0]), np.int64(1))
    assert (tmp_path / "node0.log").read_text() == ""


def test_the_configuration_says_how(tmp_path):
    (tmp_path / "worker.yaml").write_text("{name: alice, log_format: json}")
    assert WorkerConfig.from_yaml(tmp_path / "worker.yaml").log_format == "json"
    changed = WorkerConfig.from_yaml(tmp_path / "worker.yaml", log_format="text")
    assert (changed.log_format, changed.log_level) == ("text", "info")
    with pytest.raises(ConfigError, match="log_format"):
        WorkerConfig.from_yaml(tmp_path / "worker.yaml", log_format="xml")
    path = str(tmp_path / "worker.yaml")
    result = CliRunner().invoke(app, ["worker", "--config", path, "--log-format", "xml"])
    assert isinstance(result.exception, ConfigError)
    assert "log_format" in str(result.exception)
