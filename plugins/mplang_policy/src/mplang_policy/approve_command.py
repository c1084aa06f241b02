"""The command by which an owner approves a run that the rules want a signature for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mplang_analysis import ProgramRequest, PublicInput

MAX_INPUT = 20  # numbers of an input that are written out


def approving(asked: ProgramRequest, inputs: Sequence[PublicInput] = ()) -> str:
    """Return the command, as a line for a shell; file and key are the owner's to name.

    Args:
        asked: what the run would do.
        inputs: its public inputs.

    Example:
        >>> asked = ProgramRequest("ann", 0, ["bank"], "d", "pay", [])
        >>> approving(asked, [PublicInput(0, (2020,))])
        'mplang approve pay.mpl -c worker.yaml --key KEY --coordinator ann --input 0=2020'
    """
    file = re.sub(r"[^A-Za-z0-9_]", "_", asked.name)[:40]
    words = ["mplang", "approve", f"{file}.mpl", "-c", "worker.yaml", "--key", "KEY"]
    words += ["--coordinator", asked.coordinator]
    for position, numbers in inputs:
        known = numbers is not None and len(numbers) <= MAX_INPUT
        values = sorted({float(each) for each in numbers or ()})
        listed = ",".join(f"{each:.17g}" for each in values) if known and values else "any"
        words += ["--input", f"{position}={listed}"]
    return shlex.join(words)
