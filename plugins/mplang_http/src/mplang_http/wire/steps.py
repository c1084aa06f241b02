"""Refusal of steps: programs of one op, which workers in production do not take."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis.ext import quoted

from mplang_core import Program
from mplang_core.ext import AdmissionError


def step_refusal(program: Program, names: Sequence[str]) -> AdmissionError:
    """Return the error for a step that workers in production do not take.

    Args:
        program: the step.
        names: names of the workers in production.
    """
    line = next((f"{op.location}: " for op in program.graph.ops if op.location), "")
    return AdmissionError(
        f"{line}{quoted(program.name)} is a program of one op, of standard mode or an eager call, "
        f"which no owner can review; in production are {', '.join(names)}. Write it inside of one "
        'function and evaluate that (mode="launch"), or have the owner set mode: development'
    )
