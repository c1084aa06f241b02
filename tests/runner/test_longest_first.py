"""Files that start processes, and those with many tests, are run first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from longest_first import TIMES, pytest_collection_modifyitems


def test_the_longest_files_are_first_and_their_tests_stay_in_order():
    processes = [("plugins/mplang_worker/tests/test_few.py", i) for i in range(3)]
    many = [("tests/test_many.py", i) for i in range(3 * TIMES - 1)]
    one = [("tests/test_one.py", 0)]
    items = [SimpleNamespace(path=Path(path), i=i) for path, i in [*one, *many, *processes]]
    pytest_collection_modifyitems(SimpleNamespace(workerinput={}), items)
    assert [(str(each.path), each.i) for each in items] == [*processes, *many, *one]
