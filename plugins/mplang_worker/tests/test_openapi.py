"""OpenAPI tests: responses conform to the description."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from http_raw import DOUBLE, RawWorker
from mplang_http import LocalCluster
from mplang_worker.front import response_models

HERE = Path(__file__).parent
METHODS = ("get", "put", "post", "delete")


@pytest.fixture(scope="module")
def worker():
    with LocalCluster(
        1,
        imports=("mplang_testing.dialect",),
        timeouts={"body": 5.0, "head": 5.0, "connect": 0.5, "lease": 600.0},
    ) as cluster:
        made = RawWorker(cluster)
        made.works()
        yield made
        made.works()


@pytest.fixture(scope="module")
def described(worker):
    found = worker.ask("GET", "/openapi.json")
    assert found.status == 200
    return found.json


def operations(described):
    return [
        (path, method, item[method])
        for path, item in described["paths"].items()
        for method in METHODS
        if method in item
    ]


def test_every_request_and_response_is_described(described):
    for path, method, operation in operations(described):
        where = f"{method} {path}"
        assert operation["description"], where
        for code, response in operation["responses"].items():
            for kind, content in response.get("content", {}).items():
                assert content.get("schema") or kind == "application/octet-stream", (where, code)
        if method in ("put", "post"):
            (content,) = operation["requestBody"]["content"].values()
            assert content["schema"], where
            assert {"409", "411", "413", "415"} <= set(operation["responses"]), where
        assert {"400", "403", "422", "503"} <= set(operation["responses"]), where


def test_no_page_loads_scripts_from_elsewhere(worker):
    for path in ("/docs", "/redoc"):
        assert worker.ask("GET", path).error == (404, "http")


def fits(response, model) -> None:
    """Assert that a response has all fields of a model, and no others."""
    assert response.status in (200, 202)
    msgspec.convert(response.json, model)
    assert set(response.json) <= set(model.__struct_fields__)


def test_answers_are_as_described(worker):
    fits(worker.ask("GET", "/health"), response_models.Health)
    fits(worker.ask("GET", "/facts"), response_models.Facts)
    session = worker.open()
    fits(worker.put_program(DOUBLE, session), response_models.Taken)
    for x in (np.int64(1), None):  # one is done, one fails
        fits(worker.submit(session, DOUBLE, x), response_models.JobStatus)
    fits(worker.ask("GET", f"/v1/sessions/{session}/jobs"), response_models.Jobs)
    fits(
        worker.ask("DELETE", f"/v1/sessions/{session}/jobs/{session}-x"), response_models.JobStatus
    )
    fits(worker.ask("POST", f"/v1/sessions/{session}/release", b"[]"), response_models.Released)


def fuzz(worker, examples: int) -> None:
    """Run the fuzzer in another process, since it patches libraries that other tests use."""
    node = worker.cluster.spec.nodes[0]
    command = [
        sys.executable,
        str(HERE / "fuzz_openapi.py"),
        node.name,
        node.address,
        str(examples),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE)}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]


@pytest.mark.long("25 random requests to each route")
def test_no_request_makes_an_error_in_the_server(worker):
    fuzz(worker, 25)


@pytest.mark.slow("300 random requests to each route")
@pytest.mark.timeout(1800)
def test_many_requests_make_no_error_in_the_server(worker):
    fuzz(worker, 300)
