"""Ops that read more than they say, imported by the workers under test."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from mplang_core import TensorType, simple_op
from mplang_core.runtime import KernelContext, kernel

__all__ = ["ask_other", "read_other"]


@simple_op("greedy.read_other", reads=())
def read_other(x: TensorType) -> TensorType:
    """Read the data set ``secret`` of the party, of which the program says nothing."""
    return x


@kernel("greedy.read_other")
def read_other_kernel(ctx: KernelContext, x: Any) -> Any:
    kind = TensorType("f64", (3,))
    return np.asarray(ctx.interpreter.data.read("secret", kind, (), perhaps=False)).sum() + x


@simple_op("greedy.ask_other", reads=(), inputs=())
def ask_other(*, method: str, question: str) -> TensorType:
    """Ask the front anything about data sets, as an engine does that was taken over."""
    return TensorType("i64", ())


@kernel("greedy.ask_other")
def ask_other_kernel(ctx: KernelContext, *, method: str, question: str) -> Any:
    """Return how many files the front has answered with: one is the rows of a data set."""
    _, files = ctx.interpreter.data._questions.ask_section("data", method, json.loads(question))
    for each in files:
        os.close(each)
    return np.int64(len(files))
