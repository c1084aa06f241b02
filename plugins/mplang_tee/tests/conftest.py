"""Shared fixtures: a machine with a TPM."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from machines import machine
from runner.components import need


@pytest.fixture(scope="session")
def tpm_machine(pytestconfig):
    """Return a machine with a TPM; tests leave its registers as they are."""
    need(pytestconfig, "swtpm")
    with tempfile.TemporaryDirectory(prefix="tpm-") as folder, machine(Path(folder)) as made:
        yield made


@pytest.fixture
def own_machine(pytestconfig):
    """Return a machine with a TPM for one test."""
    need(pytestconfig, "swtpm")
    with tempfile.TemporaryDirectory(prefix="tpm-") as folder, machine(Path(folder)) as made:
        yield made
