"""Run of many experiments."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from .checker import Finding
from .experiment import Experiment


def check(experiments: Iterable[Experiment]) -> None:
    """Run experiments; fail with their findings, and the source of the first that has one."""
    failed: list[tuple[Experiment, list[Finding]]] = []
    for each in experiments:
        found = each.findings()
        if found:
            failed.append((each, found))
    if failed:
        shown = "\n".join(f"seed {each.seed}: {found[:3]}" for each, found in failed)
        source = "\n\n".join(source.text for source in failed[0][0].chain)
        pytest.fail(f"{len(failed)} programs\n{shown}\n\n{source}")
