"""A vendor's DuckDB file as a source: it reads no other file of the worker that has it.

Nor does it reach the network; ``test_duckdb_views.py`` has more views that would.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import pytest
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_worker.tls.keygen import make_certificates
from vendor_views import make_view

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

MARKER = "PRIVATE-OF-THE-BANK"
COLUMNS = {"id": "int64", "note": "string"}
VIEWS = {
    "read_text": "SELECT 1::BIGINT AS id, content AS note FROM read_text('{secret}')",
    "key": "SELECT 1::BIGINT AS id, content AS note FROM read_text('{key}')",
    "read_blob": "SELECT 1::BIGINT AS id, content::VARCHAR AS note FROM read_blob('{secret}')",
    "read_csv": "SELECT 1::BIGINT AS id, note FROM read_csv('{secret}')",
    "replacement": "SELECT 1::BIGINT AS id, note FROM '{secret}'",
    "glob": "SELECT 1::BIGINT AS id, string_agg(file, ' ') AS note FROM glob('{folder}/*')",
    "macro": "SELECT 1::BIGINT AS id, content AS note FROM text('{secret}')",
    "within": "SELECT 1::BIGINT AS id, (SELECT max(content) FROM read_text('{secret}')) AS note",
    "union": "SELECT * FROM made UNION ALL SELECT 2, content FROM read_text('{secret}')",
    "settings": "SELECT 1::BIGINT AS id, name AS note FROM duckdb_settings()",
    "secrets": "SELECT 1::BIGINT AS id, name AS note FROM duckdb_secrets()",
    "setting": "SELECT 1::BIGINT AS id, current_setting('enable_external_access')::VARCHAR AS note",
    "environment": "SELECT 1::BIGINT AS id, getenv('threads')::VARCHAR AS note",
    "attached": "SELECT 1::BIGINT AS id, note FROM other.main.made",
    "httpfs": "SELECT 1::BIGINT AS id, note FROM read_csv('{outside}/prices.csv')",
    "httpfs with TLS": "SELECT 1::BIGINT AS id, note FROM read_csv('{tls}/prices.csv')",
    "httpfs by suffix": "SELECT 1::BIGINT AS id, note FROM '{outside}/prices.csv'",
    "series": "SELECT g AS id, 'x' AS note FROM generate_series(1, 1000000000000) AS s(g)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bank")


@pytest.fixture(scope="module")
def files(folder):
    return make_certificates(folder / "certs", ["bank", "shop", "host"])


class Outside(ThreadingHTTPServer):
    """Server of the vendor.

    Attributes:
        connections: how many came.
    """

    connections = 0

    def get_request(self):
        self.connections += 1
        return super().get_request()


@pytest.fixture(scope="module")
def outside():
    with Outside(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def supply(folder, files, outside):
    """Return a function that puts another file of the vendor in the place of the one before."""
    host = f"127.0.0.1:{outside.server_address[1]}"
    names = {
        "secret": folder / "secret.csv",
        "key": files["bank"].key,
        "folder": folder,
        "outside": f"http://{host}",
        "tls": f"https://{host}",
    }
    return lambda query: put_file(folder, query.format(**names))


@pytest.fixture(scope="module")
def data(folder, supply):
    supply("SELECT * FROM made")
    (folder / "secret.csv").write_text(f"note\n{MARKER}\n")
    source = f"duckdb:{folder}/vendor.duckdb#prices"
    return {"bank": {"prices": {"source": source, "columns": COLUMNS, "readers": ["host"]}}}


@pytest.fixture(scope="module")
def cluster(folder, files, data):
    with LocalCluster(
        ["bank", "shop"], tls=files, coordinators=("host",), data=data, mode="production",
        log=str(folder), limits={"failures": 1000},
    ) as made:  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def host(cluster, files):
    with mp.connect("http", cluster.spec, tls=files["host"]) as made:
        yield made


def put_file(folder, query):
    """Write a file with a view ``prices``."""
    place = folder / "new.duckdb"
    place.unlink(missing_ok=True)
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute(f"CREATE TABLE IF NOT EXISTS made AS SELECT '{MARKER}' AS note")
    with duckdb.connect(str(place)) as made:
        made.execute("CREATE TABLE made AS SELECT 1::BIGINT AS id, 'a' AS note")
        made.execute("CREATE MACRO text(place) AS TABLE SELECT content FROM read_text(place)")
        if "other." in query:
            made.execute(f"ATTACH '{folder}/other.duckdb' AS other")
        if "getenv" in query:  # of DuckDB's shell, which a file may have been made with
            made.execute("CREATE MACRO getenv(name) AS current_setting(name)")
        make_view(made, query)
    place.replace(folder / "vendor.duckdb")


def read():
    return mp.dataset("bank", "prices", type=COLUMNS)


def rows(host):
    return mp.fetch(host, mp.evaluate(host, read)).to_pylist()


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_that_reads_anything_else_gives_nothing(host, folder, files, supply, outside, view):
    """What it reads is told to nobody, and nobody is asked for it."""
    supply(VIEWS[view])
    log = LogReader(folder / "bank.log")
    with pytest.raises(PartyError, match="the reason is in that party's log") as caught:
        rows(host)
    assert MARKER not in str(caught.value)
    log.wait_for(r"data set prices cannot be read")
    for secret in (MARKER, Path(files["bank"].key).read_text().splitlines()[1]):
        assert secret not in (folder / "bank.log").read_text()
    assert outside.connections == 0


def test_the_worker_serves_what_is_good_again(host, supply):
    supply(VIEWS["series"])
    with pytest.raises(PartyError):
        rows(host)
    supply("SELECT * FROM made")
    assert rows(host) == [{"id": 1, "note": "a"}]


@pytest.mark.parametrize("view", ["key", "httpfs"])
def test_a_worker_with_such_a_source_does_not_start(files, data, supply, outside, view):
    supply(VIEWS[view])
    try:
        with (
            pytest.raises(ConfigError, match="field 'data.prices': 'prices' reads from outside of"),
            LocalCluster(["bank"], tls=files, data={"bank": data["bank"]}, mode="production"),
        ):
            pass
    finally:
        supply("SELECT * FROM made")
    assert outside.connections == 0
