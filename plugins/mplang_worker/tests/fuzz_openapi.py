"""Property-based tests of a worker's OpenAPI description; usage: NAME ADDRESS EXAMPLES."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import schemathesis
from http_raw import DOUBLE, RawWorker, sha
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import mplang_core as mp


def fuzz(worker, examples: int) -> None:
    """Send valid and invalid requests, with and without an open session."""
    host, port = worker.endpoint
    schema = schemathesis.openapi.from_url(f"http://{host}:{port}/openapi.json")
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    how = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=examples < 50,
        suppress_health_check=list(HealthCheck),
    )

    def ask(case, here) -> None:
        if here and "session" in case.path_parameters:
            worker.open(name="here")
            worker.put_program(DOUBLE, "here")
            case.path_parameters["session"] = "here"
        if here and "program" in case.path_parameters and isinstance(case.body, bytes):
            case.path_parameters["program"] = sha(case.body)
        case.call_and_validate(checks=checks)

    for found in schema.get_all_operations():
        how(given(found.ok().as_strategy(), booleans())(ask))()


if __name__ == "__main__":
    name, address, examples = sys.argv[1:]
    spec = mp.ClusterSpec([{"name": name, "address": address}])
    fuzz(RawWorker(SimpleNamespace(spec=spec)), int(examples))
