"""Prepared products of CHEETAH: a member makes 4,096 at a time, for whichever op needs them.

A product of shares takes one prepared product of random numbers for each element, and opens what
differs (Beaver, CRYPTO 1991). CHEETAH prepares them by homomorphic encryption in batches, and keeps
what is left over for the next op: libspu's ``CheetahMulState::makeSureCacheSize``. So batches are
no op's own. Products of 16,384 elements and more are encrypted directly, and take none.
"""

from __future__ import annotations

from collections.abc import Sequence

from mplang_spu.costs.members import Sent

BATCH = 8192
"""Numbers in a batch; two make a prepared product of shares."""


class PreparedProducts:
    """PreparedProducts products that the members have."""

    def __init__(self) -> None:
        self._left = 0

    def take(self, opened: Sequence[int]) -> int:
        """Take what products need, one after the other.

        Args:
            opened: per product, its elements.

        Returns:
            The batches that are made for them.

        Example:
            >>> prepared = PreparedProducts()
            >>> prepared.take([300, 300]), prepared.take([4000])
            (1, 1)
        """
        made = 0
        for elements in opened:
            if self._left < elements:
                batches = -(-2 * elements // BATCH)
                made, self._left = made + batches, self._left + batches * BATCH // 2
            self._left -= elements
        return made


def opened_of(sent: Sequence[Sent], width: int) -> tuple[int, ...]:
    """Return how many elements each product by prepared ones took.

    Args:
        sent: the messages of an op.
        width: bytes of an element.
    """
    return tuple(each.size // (2 * width) for each in sent if each.sender == 0 and _opens(each))


def split_batches(sent: Sequence[Sent]) -> tuple[list[Sent], list[Sent]]:
    """Return the messages without those of batches, and those of batches."""
    kept: list[Sent] = []
    batches: list[Sent] = []
    for sender in {each.sender for each in sent}:
        encrypted: list[Sent] = []
        for each in (each for each in sent if each.sender == sender):
            if each.link == "root" and each.kind == "P2P":
                encrypted.append(each)
                continue
            if encrypted:
                (batches if _opens(each) else kept).extend(encrypted)
                encrypted = []
            kept.append(each)
        kept += encrypted
    return kept, batches


def _opens(message: Sent) -> bool:
    return message.link == "root" and message.kind == "ALLGATHER"
