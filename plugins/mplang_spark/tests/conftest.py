"""The one server of Spark that all tests of this folder share."""

from __future__ import annotations

import components
import pytest


@pytest.fixture(scope="session")
def server(pytestconfig):
    """Start a Spark Connect server."""
    components.need(pytestconfig, "spark")
    from spark_server import SparkServer

    made = SparkServer()
    yield made
    made.close()
