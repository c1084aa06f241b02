"""A Spark Connect server with Debian's Java, run by the tests."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile

import components
import pyarrow.parquet as parquet
from mplang_spark.address import parse_address
from mplang_spark.connect import SparkConnection
from mplang_testing import waiting

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


class SparkServer:
    """Server on loopback, with a folder for its tables and two threads."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mplang-spark-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        options = {
            **OPTIONS,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": f"{self.folder}/warehouse",
            "spark.local.dir": self.folder,
        }
        home = components.spark_home()
        environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment.pop("PYTHONPATH", None)
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(
                [
                    f"{home}/bin/spark-class", "org.apache.spark.deploy.SparkSubmit",
                    "--master", "local[2]", "--driver-memory", "2g",
                    *(f"--conf={name}={value}" for name, value in options.items()),
                    "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
                    "spark-internal",
                ],
                cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        try:  # each step takes half a minute beside other work
            waiting.wait_until(lambda: "Starting Spark session" in self._log(), "Java has started")
            waiting.wait_until(lambda: "Registering MapOutput" in self._log(), "Spark has started")
            waiting.wait_until(self._listens, "Spark takes connections")
        except BaseException:
            self.close()
            raise

    def _log(self):
        with open(f"{self.folder}/log") as file:
            text = file.read()
        assert self.process.poll() is None, text[-3000:]
        return text

    def _listens(self):
        self._log()
        with socket.socket() as made:
            return made.connect_ex(("127.0.0.1", self.port)) == 0

    def jobs(self):
        """Return how many tasks the server works on."""
        text = self._log()
        ended = ("Finished task ", "Executor interrupted and killed task ", "Exception in task ")
        begun = text.count("Executor: Running task ")  # each is told by the scheduler, too
        return begun - sum(text.count(f"Executor: {each}") for each in ended)

    @property
    def place(self):
        """Place of the server in a catalogue."""
        return f"spark:sc://127.0.0.1:{self.port}"

    def connect(self):
        made = SparkConnection(parse_address(f"sc://127.0.0.1:{self.port}"))
        made.wait(60)
        return made

    def execute(self, sql):
        with self.connect() as connection:
            return [row for part in connection.query(sql, 60) for row in part.to_pylist()]

    def create(self, name, table):
        """Make a table of Spark of one of Arrow."""
        path = f"{self.folder}/{name}.parquet"
        parquet.write_table(table, path)
        self.execute(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
