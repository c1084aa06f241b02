"""What a process that reads a source, or writes a sink, cannot do if its source takes it over."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mplang_confinement import has_seccomp, landlock_version
from mplang_data import SourceError, apart
from mplang_data.apart import _ServerClient, run_apart
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from postgres import PASSWORD, server as server

MB = 1_000_000
LEADS_OUT = [
    "socket.socket()",
    "os.fork()",
    "os.execv('/bin/true', ['true'])",
    "os.kill(os.getppid(), 0)",
    "Path('/etc/shadow').read_text()",
    "os.listdir('/')",
    "os.listdir(Path.home())",
    "Path(f'/proc/{os.getppid()}/environ').read_bytes()",
]
TOLD = """
files = [n for n in range(3, 100) if os.path.exists(f"/proc/self/fd/{n}")]
told = min(n for n in files if not os.fstat(n).st_size)
"""  # what was asked is in another one, before it
SERVER = _ServerClient()  # which finds what is imported here
pytestmark = pytest.mark.skipif(
    not landlock_version() or not has_seccomp(), reason="nothing can be given up here"
)


def invaded(*codes, files=(), size=100 * MB, **asked):
    """Run codes in a process that reads a source; return the errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}")
        patch.setattr(apart, "_server", SERVER)
        return run_apart("invading", {"codes": codes, **asked}, list(files), size=size)


def refused(errors):
    return set(errors) <= {"EPERM", "EACCES"}


@pytest.fixture
def folder(tmp_path):
    for name in ("bank.duckdb", "bank.key"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_process_that_reads_files_has_the_open_ones_alone(folder):
    file = os.open(folder / "bank.duckdb", os.O_RDONLY)
    read, *others = invaded(
        "assert os.pread(files[0], 99, 0) == b'bank.duckdb'", f"os.listdir({str(folder)!r})",
        f"Path({str(folder / 'bank.key')!r}).read_text()",
        f"Path({str(folder / 'bank.duckdb')!r}).read_text()",
        f"Path({str(folder / 'new')!r}).write_text('')", *LEADS_OUT, files=[file],
    )  # fmt: skip
    os.close(file)
    assert read is None
    assert refused(others)


def test_a_process_that_reads_a_duckdb_file_has_that_file_alone(folder):
    read, *others = invaded(
        f"Path({str(folder / 'bank.duckdb')!r}).read_text()",
        f"Path({str(folder / 'bank.duckdb')!r}).write_text('')",
        f"Path({str(folder / 'bank.key')!r}).read_text()",
        f"os.unlink({str(folder / 'bank.key')!r})", f"os.listdir({str(folder)!r})",
        *LEADS_OUT, url=f"duckdb:{folder}/bank.duckdb", writes=False,
    )  # fmt: skip
    assert read is None
    assert refused(others)


def test_no_thread_of_a_library_is_left_out(folder):
    """Landlock restricts the thread that asks; libraries start others when they are imported."""
    url = f"duckdb:{folder}/bank.duckdb"
    code = "if len(os.listdir('/proc/self/task')) > 1: raise OSError(1, 'several threads')"
    assert invaded(code, url=url, writes=False) == [None]


def test_a_process_that_writes_a_duckdb_file_has_its_folder_alone(folder):
    inner = folder / "inner"
    inner.mkdir()
    wrote, *others = invaded(
        f"Path({str(inner / 'bank.duckdb')!r}).write_text('')",
        f"Path({str(folder / 'bank.key')!r}).read_text()",
        f"os.unlink({str(folder / 'bank.key')!r})", *LEADS_OUT,
        url=f"duckdb:{inner}/bank.duckdb", writes=True,
    )  # fmt: skip
    assert wrote is None
    assert refused(others)


@pytest.mark.skipif(landlock_version() < 4, reason="Landlock knows no ports here")
def test_a_process_that_asks_a_server_has_its_port_and_its_files_alone(folder):
    with socket.create_server(("127.0.0.1", 0)) as mine, socket.create_server(("", 0)) as other:
        ports = [each.getsockname()[1] for each in (mine, other)]
        connected, read, *others = invaded(
            f"socket.create_connection(('127.0.0.1', {ports[0]}))",
            f"Path({str(folder / 'bank.key')!r}).read_text()",
            f"Path({str(folder / 'bank.duckdb')!r}).read_text()",
            f"socket.create_connection(('127.0.0.1', {ports[1]}))",
            "socket.create_server(('127.0.0.1', 0))", *LEADS_OUT[1:],
            url=f"postgresql://reader@127.0.0.1:{ports[0]}/bank?passfile={folder}/bank.key",
            writes=False,
        )  # fmt: skip
    assert connected is None
    assert read is None
    assert refused(others)


@pytest.mark.parametrize("name", ["HOME", "PGPASSWORD", "BANK_TOKEN"])
def test_the_environment_of_the_worker_is_not_passed_on(monkeypatch, name):
    """But for what a process needs to start, and libpq to connect."""
    monkeypatch.setenv("BANK_TOKEN", "s3cret")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    code = f"if {name!r} not in os.environ: raise FileNotFoundError(2, '')"
    assert invaded(code) == [None if name != "BANK_TOKEN" else "ENOENT"]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("kept = bytes(3 << 30)", "more than 100000000 bytes of memory .size, in the catalogue"),
        (f"{TOLD}\nwhile True: os.write(told, bytes(1 << 20))", "it was not invaded|has ended"),
        ("os.abort()", "the process that reads it has ended; it may take 100000000 bytes"),
        (f"{TOLD}\nos.write(told, b'[' * 100_000)", "the process that reads it has ended"),
    ],
    ids=["memory", "told", "crash", "nested"],
)
def test_limits(code, told):
    with pytest.raises(SourceError, match=told):
        invaded(code)


# -- what a database's server says


def source(server, query, **fields):
    server.execute(f"CREATE OR REPLACE VIEW vendor AS {query}")
    place = f"{server.place}#vendor"
    data = {"prices": {"source": place, "columns": {"note": "str"}, "size": 50 * MB, **fields}}
    return read_data_sets(data, "/")["prices"]


@pytest.mark.long("a server sends as much as is taken of 10 GB")
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT repeat('x', 100) AS note FROM generate_series(1, 100000000)", "50000000 bytes"),
        ("SELECT repeat('x', 1000000) AS note FROM generate_series(1, 10000)", "does not give it"),
    ],
    ids=["rows", "bytes"],
)
def test_a_server_that_sends_without_end_meets_a_limit(server, query, told):
    """The second in one answer, which libpq keeps in memory."""
    fields = source(server, query).model_dump_json()
    command = [sys.executable, "-c", CHECK, fields]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    text, peak = json.loads(done.stdout)
    assert re.search(told, text)
    assert PASSWORD not in text
    assert peak < 50 * MB + (1 << 30) + 300 * MB
    server.execute("DROP VIEW vendor")


CHECK = """
import json, resource, sys
from mplang_data import DataSet, SourceError
from mplang_data.ext import check_data_set
try:
    text = f"{check_data_set(DataSet.model_validate_json(sys.argv[1]))} rows"
except SourceError as error:
    text = f"{error} {error.__cause__}"
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # of this process alone
print(json.dumps([text, peak]))
"""


@pytest.mark.long("starts a database server")
def test_a_size_that_is_enough_is_enough(server):
    data_set = source(server, "SELECT repeat('x', 100) AS note FROM generate_series(1, 100000)")
    assert check_data_set(data_set) == 100_000
