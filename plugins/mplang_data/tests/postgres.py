"""A PostgreSQL server of Debian's package, run by the tests."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile

import components
import pytest

PASSWORD = "s3cret-of-the-bank"
FOLDERS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))


class Server:
    """Server on loopback with the role ``reader``, which has a password."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mplang-pg-")
        self.user = "postgres" if os.getuid() == 0 else None  # the server refuses root
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        with open(f"{self.folder}/password", "w") as file:
            file.write(PASSWORD)
        os.chmod(f"{self.folder}/password", 0o644)
        self._run(
            "initdb", "-U", "owner", "-A", "scram-sha-256", f"--pwfile={self.folder}/password",
            "--no-sync", "-D", f"{self.folder}/db",
        )  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def _run(self, program, *args):
        subprocess.run(
            [f"{FOLDERS[-1]}/{program}", *args], user=self.user, cwd=self.folder, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        options += f" -c unix_socket_directories={self.folder}"
        log = f"{self.folder}/log"
        self._run("pg_ctl", "-w", "-D", f"{self.folder}/db", "-o", options, "-l", log, "start")

    def stop(self):
        self._run("pg_ctl", "-D", f"{self.folder}/db", "-m", "immediate", "stop")

    @property
    def place(self):
        """Place of the database in a catalogue."""
        return f"postgresql://owner:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def execute(self, sql):
        import psycopg

        with psycopg.connect(self.place, autocommit=True) as connection:
            return connection.execute(sql)

    def close(self):
        self.stop()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def server(pytestconfig):
    components.need(pytestconfig, "postgresql")
    made = Server()
    yield made
    made.close()
