"""No public class shows itself by an address, which tells nothing and differs at each run."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

LISTS = sorted((Path(__file__).parent / "public_api").glob("*.txt"))

INNER = {
    "Attestation", "AttestationProvider", "Database", "Files", "Gate", "HttpCommunicator",
    "Interpreter", "KernelContext", "Ledger", "LocalStorage", "MPLangChannel", "MemoryFolders",
    "Meetings", "ObservedWorker", "Of", "PartyThread", "Published", "Scan", "Sink", "Source",
    "SpanRecorder", "SparkTables",
    "ThreadCommunicator", "TypeParser", "Waiter", "WorkerInterpreter",
}  # fmt: skip
"""Classes of instances that stay within a process of ours, and that nobody is given."""


def classes(text: str) -> list[type]:
    """Return the classes that a list of public names has."""
    found = []
    for path, name in re.findall(r"^([a-z_]+(?:\.[a-z_]+)*)\.([A-Z]\w*)\(", text, re.M):
        module = re.sub(r"^mp\b", "mplang_core", path)
        each = getattr(importlib.import_module(module), name)
        is_shown = inspect.isclass(each) and not issubclass(each, BaseException)
        if is_shown and not getattr(each, "_is_protocol", False) and not inspect.isabstract(each):
            found.append(each)
    return found


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_a_class_has_a_text_of_its_own(file):
    pytest.importorskip(file.stem)
    bare = [each.__name__ for each in classes(file.read_text()) if each.__repr__ is object.__repr__]
    assert not set(bare) - INNER, "give it a __repr__, as short as <Device SP0>"
