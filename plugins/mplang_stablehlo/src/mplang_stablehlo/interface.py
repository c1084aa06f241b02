"""Interfaces of ops and programs of StableHLO. Imports no JAX."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mplang_core import FeProgram, PFunction
from mplang_core.ext import Operation, Value, interface_of


@runtime_checkable
class RunsStableHlo(Protocol):
    """Op interface: the op runs a module of StableHLO on its operands, and nothing else."""

    def code(self, op: Operation) -> bytes:
        """Return the compressed text of the module, as :func:`mplang_stablehlo.read` takes it."""

    def engine(self, op: Operation) -> Hashable:
        """Return what runs it, and how: ops with equal engines may share a module."""

    def linked(
        self, ops: Sequence[Operation], code: bytes, ins: Sequence[Value], outs: Sequence[Value]
    ) -> Operation | None:
        """Return one op that does what several do.

        Args:
            ops: those that it replaces, of one engine.
            code: a module that does what they do together.
            ins: its operands.
            outs: its results.

        Returns:
            The op; ``None`` if the engine refuses the code.
        """


@runtime_checkable
class SeparatesPublicPart(Protocol):
    """Program of ``jax.run`` from which compilers for secrets can take the public part."""

    def public_part(
        self, secret: Sequence[bool]
    ) -> tuple[PFunction | None, Sequence[int], FeProgram] | None:
        """Split off the public part.

        Args:
            secret: whether each operand is secret.

        Returns:
            The op that computes public values, which it takes of the program's operands and
            constants by number, ``None`` if they are constants; these numbers; the program of the
            rest, which takes the results after all others. ``None`` if there is no public part.
        """


@runtime_checkable
class ComputesHere(Protocol):
    """Op interface: the op can be computed in this process, without parties."""

    def compute(
        self, op: Operation, args: Sequence[np.ndarray[Any, Any]]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results of the op.

        Args:
            op: the op.
            args: its operands.

        Raises:
            AdmissionError: the engine refuses the code.
        """


def module_of(op: Operation) -> RunsStableHlo | None:
    """Return how an op runs StableHLO; ``None`` if it does not."""
    return interface_of(op, RunsStableHlo)
