"""Messages of a member of an SPU that is evil: changed, dropped, repeated, invented."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Messages: TypeAlias = list[tuple[str, bytes]]
Wrong: TypeAlias = Callable[[int, str, bytes], Messages]
"""Returns what is sent to a party in the place of a message: keys and data."""


class WrongMessages:
    """Part of a communicator that sends wrong messages; the class of the communicator follows it.

    Attributes:
        wrong: what is sent in the place of messages; ``None`` if they are right.
    """

    wrong: Wrong | None = None

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        if self.wrong is None:
            return super()._send(to_rank, key, data)
        for other_key, other in self.wrong(to_rank, key, bytes(data)):
            super()._send(to_rank, other_key, other)
        return len(data)


class AtRandom:
    """Wrong messages by chance, of all kinds.

    Args:
        seed: of the generator, which also decides how many are wrong.
    """

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._rate = self._dice.choice([0.01, 0.05, 0.2])
        self._last = b"\1"

    def __call__(self, to_rank: int, key: str, data: bytes) -> Messages:
        right, last, self._last = (key, data), self._last, data or b"\1"
        if self._dice.random() >= self._rate:
            return [right]
        match self._dice.choice(["change"] * 5 + ["repeat", "invent", "drop"]):
            case "invent":
                return [(f"{key[:-1]}{self._dice.randrange(10)}", last), right]
            case "repeat":
                return [(key, last), right]  # the second one of a key is dropped
            case "change":
                return [(key, change(data, self._dice)), right]
        return []


class Added:
    """A number that is added to words of one message, as a peer does who aims at an index.

    Args:
        to_rank: who gets the message.
        number: how many messages of libspu it has got before, in the run.
        added: what is added to each word of 64 bits.
        every: which of the words: the low halves of words of 128 bits by default.
    """

    def __init__(self, to_rank: int, number: int, added: int, every: int = 2) -> None:
        self._to_rank, self._left = to_rank, number
        self._added, self._every = np.uint64(added), every

    def __call__(self, to_rank: int, key: str, data: bytes) -> Messages:
        if to_rank != self._to_rank or "|" not in key:
            return [(key, data)]
        self._left -= 1
        return [(key, data if self._left != -1 else add(data, self._added, self._every))]


def change(data: bytes, dice: random.Random) -> bytes:
    """Return other data: in its bytes, its length, or a number added to all of its words."""
    words = [
        b"\xff" * 8,
        bytes(8),
        (1 << 62).to_bytes(8, "little"),
        (1 << 31).to_bytes(8, "little"),
    ]
    at = dice.randrange(len(data)) if data else 0
    kind = dice.randrange(9)
    if kind == 0:
        return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
    if kind == 1:
        return data[: max(at, 1)]
    if kind == 2:
        return data + dice.randbytes(dice.choice([1, 8, 64, 4096]))
    if kind == 3:
        return dice.randbytes(len(data) or 1)
    if kind == 4:
        return b"\xff" * (len(data) or 1)
    if kind == 5:
        return bytes(1)
    if kind == 6:
        return data * 2
    if kind == 7:
        return data[:at] + dice.choice(words) + data[at + 8 :]
    return add(data, np.uint64(dice.choice([1, 20, 2000, 1 << 40, 1 << 63])), 1)


def add(data: bytes, number: np.uint64, every: int) -> bytes:
    """Return data with a number added to words of 64 bits, the first one and each ``every`` th."""
    end = len(data) // 8 * 8
    words = np.frombuffer(data[:end], np.uint64).copy()
    words[::every] += number
    return words.tobytes() + data[end:]
