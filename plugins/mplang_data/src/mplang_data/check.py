"""Check of data sets in a process of its own: ``python -m mplang_data.check``.

It reads data sets by name in JSON, and prints for each its number of rows, or what is wrong.
A worker runs it before it starts, since a damaged source may end the process that reads it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from mplang_data.description import SourceError
from mplang_data.holding import DataSet, check, read_data_sets


def checked(data_sets: Mapping[str, DataSet], *, whole: bool) -> dict[str, dict[str, Any]]:
    """Return for each data set its ``rows``, and its ``error``, as its owner may see it.

    Args:
        data_sets: the data sets, by name.
        whole: whether to read all rows, also of a source that tells its type without.
    """
    found = {}
    for name, each in data_sets.items():
        rows, wrong = None, None
        try:
            rows = check(each, whole=whole)
        except Exception as error:  # one that is wrong hides no other
            wrong = str(error) if isinstance(error, SourceError) else type(error).__name__
            if error.__cause__ is not None:
                wrong += f": {' '.join(str(error.__cause__).split())[:500]}"
        found[name] = {"rows": rows, "error": wrong}
    return found


if __name__ == "__main__":
    json.dump(checked(read_data_sets(json.load(sys.stdin), "/"), whole=False), sys.stdout)
