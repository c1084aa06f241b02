"""CSV files of the tests, and their rows."""

from __future__ import annotations


def stored(folder, content):
    (folder / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"csv:{folder}/x.csv"


def rows_of(data_set):
    opened = data_set.open()
    try:
        return [tuple(row.values()) for row in opened.read(data_set.type).to_pylist()]
    finally:
        opened.close()
