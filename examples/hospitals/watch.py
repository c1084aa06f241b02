"""Whether a process has had a row: a look through its memory, and what went over its sockets.

A row is found by two neighbours as they lie in memory, in a row or down a column, as float64 and as
float32, and as the text of a CSV file. Numbers of few digits are anybody's.
"""

from __future__ import annotations

import re
import ssl
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

PART = 64 << 20  # bytes that are looked through at a time
OVERLAP = 64  # bytes
_TEXT = re.compile(rb"\d+\.\d+,\d+\.\d+")


class Neighbours:
    """Pairs of numbers that lie beside each other in a table, which are looked for in large data.

    Args:
        pairs: the pairs, of shape (n, 2), as float64 or float32.
    """

    def __init__(self, pairs: np.ndarray[Any, Any]) -> None:
        words = np.ascontiguousarray(pairs).view(np.uint64)
        self._pairs = {tuple(pair) for pair in words.tolist()}
        self._firsts = np.unique(words[:, 0])
        self._size = words.shape[1]  # words of a pair
        self._begins = np.zeros(1 << 16, bool)  # most words are out by their first bits
        self._begins[self._firsts >> np.uint64(48)] = True

    def any_in(self, data: bytes, offsets: Iterable[int]) -> bool:
        """Return whether one is in data, at a multiple of eight bytes from an offset."""
        for offset in offsets:
            count = max(0, len(data) - offset) // 8
            words = np.frombuffer(data, np.uint64, count, offset)
            maybe = np.flatnonzero(self._begins[words >> np.uint64(48)])
            hits = maybe[np.isin(words[maybe], self._firsts)]
            if any(tuple(words[hit : hit + self._size].tolist()) in self._pairs for hit in hits):
                return True
        return False


class Rows:
    """The rows of a table, as they would be found.

    Args:
        table: the table, of float64.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        cells = table.to_numpy(np.float64)
        is_rare = np.vectorize(_is_rare)(cells)
        pairs = []
        for numbers, rare in ((cells, is_rare), (cells.T, is_rare.T)):
            both = rare[:, :-1] & rare[:, 1:]
            pairs.append(np.stack([numbers[:, :-1][both], numbers[:, 1:][both]], 1))
        beside = np.concatenate(pairs)
        self._doubles = Neighbours(beside)
        self._floats = Neighbours(beside.astype(np.float32))
        texts = _TEXT.findall(table.to_csv(index=False, header=False).encode())
        self._texts = {text for text in texts if all(_is_rare(n) for n in text.split(b","))}

    def found_in(self, data: bytes, *, aligned: bool = False) -> list[str]:
        """Return how rows are found in data; nothing if they are not.

        Args:
            data: bytes.
            aligned: whether numbers lie where processors want them, as in memory.
        """
        found = []
        if self._texts.intersection(_TEXT.findall(data)):
            found.append("text")
        if self._doubles.any_in(data, [0] if aligned else range(8)):
            found.append("float64")
        if self._floats.any_in(data, [0, 4] if aligned else range(8)):
            found.append("float32")
        return found


def _is_rare(number: Any) -> bool:
    """Return whether a number has four digits or more, so that no two others are beside it."""
    return len(f"{float(number):.12g}".replace(".", "").lstrip("0")) >= 4


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
