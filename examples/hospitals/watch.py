"""Whether a process has had a row: a look through its memory, and what went over its sockets.

A row is found by its numbers as they lie in memory: as float64, by two neighbours as float32, in a
row or down a column, and as the text of a CSV file.
"""

from __future__ import annotations

import re
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

PART = 64 << 20  # bytes that are looked through at a time
OVERLAP = 64  # bytes
_TEXT = re.compile(rb"\d+\.\d+,\d+\.\d+")


class Rows:
    """The rows of a table, as they would be found.

    Args:
        table: the table.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        cells = table.to_numpy(np.float64)
        rare = cells[np.abs(cells - np.round(cells, 1)) > 1e-9]  # round numbers are anybody's
        self._doubles = np.unique(rare.view(np.uint64))
        narrow = cells.astype(np.float32)
        is_rare = np.abs(cells - np.round(cells, 1)) > 1e-9
        pairs = [
            np.stack([each[:, :-1][both], each[:, 1:][both]], 1)
            for each, odd in ((narrow, is_rare), (narrow.T, is_rare.T))
            for both in [odd[:, :-1] & odd[:, 1:]]
        ]
        self._pairs = np.unique(np.ascontiguousarray(np.concatenate(pairs)).view(np.uint64))
        texts = table.to_csv(index=False, header=False).encode()
        self._texts = set(_TEXT.findall(texts))

    def found_in(self, data: bytes) -> list[str]:
        """Return how rows are found in data; nothing if they are not."""
        found = []
        if self._texts.intersection(_TEXT.findall(data)):
            found.append("text")
        for name, wanted, step in (("float64", self._doubles, 1), ("float32", self._pairs, 1)):
            for offset in range(0, 8, step):
                words = np.frombuffer(
                    data[offset : offset + (len(data) - offset) // 8 * 8], np.uint64
                )
                if np.isin(words, wanted).any():
                    found.append(name)
                    break
        return found


def memory_of(process: int) -> Iterator[bytes]:
    """Yield the memory of a process that this one has started, in overlapping parts."""
    with open(f"/proc/{process}/maps", encoding="utf-8") as maps:
        regions = [line.split() for line in maps]
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        for span, rights, *_ in regions:
            begin, end = (int(each, 16) for each in span.split("-"))
            if rights.startswith("rw"):
                yield from _parts(memory, begin, end)


def _parts(memory: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    for at in range(begin, end, PART):
        try:
            memory.seek(at)
            yield memory.read(min(PART + OVERLAP, end - at))
        except (OSError, ValueError):  # not all that is mapped can be read
            return


def record(file: str) -> None:
    """Have this process write what goes over its TLS sockets, decrypted, to a file as well."""
    log = open(file, "ab", 0)  # noqa: SIM115 (for as long as the process lives)

    def keep(name: str) -> None:
        plain = getattr(ssl.SSLSocket, name)

        def kept(self: ssl.SSLSocket, *args: Any, **options: Any) -> Any:
            done = plain(self, *args, **options)
            if name in ("send", "sendall", "write"):
                log.write(bytes(args[0]))
            elif isinstance(done, bytes):
                log.write(done)
            else:
                log.write(bytes(memoryview(args[0]).cast("B")[:done]))
            return done

        setattr(ssl.SSLSocket, name, kept)

    for name in ("send", "sendall", "recv", "recv_into"):
        keep(name)


if __name__ == "__main__":  # python watch.py FILE analyst.py …: the same, recorded
    import runpy

    _, target, *sys.argv = sys.argv
    record(target)
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
