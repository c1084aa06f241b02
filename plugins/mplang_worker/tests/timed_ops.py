"""Ops whose duration depends on private data, as they say, for workers that import this module."""

from __future__ import annotations

import logging
from typing import Any

from mplang_analysis import SideChannelRule, SideChannels

import mplang_core as mp

log = logging.getLogger("mplang.timed")


@mp.simple_op("timed.read")
def read(x: mp.TensorType) -> mp.TensorType:
    """Counts as made of all data of its party."""
    return x


@mp.simple_op(
    "timed.work", reads=(), interfaces=[SideChannelRule(lambda op: SideChannels(duration=(0,)))]
)
def work(x: mp.TensorType) -> mp.TensorType:
    """Takes any time, and is logged."""
    return x


@mp.kernel("timed.read")
def _read(ctx: Any, x: Any) -> Any:
    return x


@mp.kernel("timed.work")
def _work(ctx: Any, x: Any) -> Any:
    log.info("timed work")
    return x


def timed(x: Any) -> Any:
    """Return the value, in a program whose duration depends on private data of who holds it."""
    return mp.invoke(work, mp.invoke(read, x))
