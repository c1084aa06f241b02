"""Approvals that a worker has: in a folder, and of coordinators that have passed them on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mplang_analysis import ProgramRequest, PublicInput
from mplang_analysis.ext import quoted

from mplang_core.ext import ConfigError
from mplang_policy.approval import Approval, uncovered
from mplang_policy.envelope import (
    MAX_ENVELOPE,
    Signed,
    open_envelope,
    open_signed,
    read_public_keys,
)
from mplang_policy.gate_config import GateConfig
from mplang_policy.request import Request, describe

SUFFIX = ".approval"


class Wanted(NamedTuple):
    """Part of a run that needs an approval.

    Attributes:
        asked: what it would do.
        inputs: its public inputs.
        party: name of the party whose approval is asked for.
        requests: what it does at the party, as its rules are asked.
    """

    asked: ProgramRequest
    inputs: Sequence[PublicInput]
    party: str
    requests: Sequence[Request]

    def refusal(self, approval: Approval) -> str:
        """Return why an approval is not for this run; empty if it is."""
        return self.other_program(approval) or next(self._inputs(approval), "")

    def other_program(self, approval: Approval) -> str:
        """Return why an approval is not for this program, whatever its inputs; empty if it is."""
        asked = self.asked
        if approval.party != self.party:
            return f"it is of {approval.party}"
        if approval.program != asked.program:
            return f"it is for program {approval.program[:12]}, and this is {asked.program[:12]}"
        if other := self._other_lines(approval):
            return other
        if asked.coordinator not in approval.coordinators:
            return f"it is for {' and '.join(approval.coordinators)}"
        if list(approval.parties) != list(asked.names):
            parties = ", ".join(map(quoted, approval.parties))
            return f"it is for the parties {parties}, in this order"
        more = uncovered(approval.rows, self.requests)
        return "" if more is None else f"nobody was shown {describe(more)}"

    def _other_lines(self, approval: Approval) -> str:
        """Return why what is told of the program's lines is not what was shown."""
        asked = self.asked
        if approval.version == 1:
            same = approval.shown == asked.shown
            return "" if same else "its names or lines are not those that were shown"
        if approval.name != asked.name:
            return f"it is for {quoted(approval.name)}, and this is called {quoted(asked.name)}"
        if not asked.texts:
            return (
                "the run does not include its source lines, which were shown: upgrade mplang-http "
                "at the coordinator, or run the program as a whole"
            )
        if approval.shown != asked.texts:
            return "the text of its lines is not what was shown: have it approved as it is now"
        return ""

    def _inputs(self, approval: Approval) -> Iterator[str]:
        given = {each.position: each.numbers for each in self.inputs}
        for position in sorted(given.keys() - approval.inputs.keys()):
            yield f"it does not name the public input {position}"
        for position, allowed in approval.inputs.items():
            if position not in given:
                yield f"{quoted(allowed.name)} must be public, and the same at all parties"
            else:
                told = allowed.refusal(given[position])
                if told:
                    yield told


class Approvals:
    """The approvals of a worker, as they are now. Safe for threads.

    Args:
        config: where they are, and whose signatures count.

    Raises:
        ConfigError: a key cannot be read.
    """

    def __init__(self, config: GateConfig) -> None:
        self.keys = read_public_keys(config.approvers)
        self.threshold = config.threshold
        self._folder = None if config.approvals is None else Path(config.approvals)
        self._read: dict[Path, tuple[object, Signed | None]] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Signed]:
        """Return those with enough signatures."""
        return [each for each in self.read() if self.counts(each)]

    def read(self) -> list[Signed]:
        """Return all of the folder; what is not an approval is left out."""
        return [each for _, each in self.files()]

    def files(self) -> list[tuple[Path, Signed]]:
        """Return the files of the folder, with what is in them."""
        with self._lock:
            found = [(file, self._of(file)) for file in self._files()]
        return [(file, each) for file, each in found if each is not None]

    def open(self, data: bytes) -> Signed | None:
        """Return an approval that a coordinator passes on; ``None`` if too few have signed it.

        Args:
            data: untrusted bytes.

        Raises:
            ConfigError: it is not an envelope of an approval.
        """
        return open_signed(data, self.keys, self.threshold) if self.keys else None

    def counts(self, signed: Signed) -> bool:
        """Return whether an approval has enough signatures of those whose count now."""
        here = list(self.keys.values())
        return sum(key in here for key in signed.keys) >= self.threshold

    def _files(self) -> list[Path]:
        if self._folder is None or not self._folder.is_dir():
            return []
        return sorted(self._folder.glob(f"*{SUFFIX}"))

    def _of(self, file: Path) -> Signed | None:
        """Return the approval of a file; read once, unless it changes."""
        try:
            found = file.stat()
            seen = found.st_ino, found.st_size, found.st_mtime_ns
            if found.st_size > MAX_ENVELOPE:
                return None
            known = self._read.get(file)
            if known is None or known[0] != seen:
                try:
                    signed: Signed | None = open_envelope(file.read_bytes(), self.keys)
                except ConfigError:
                    signed = None
                known = self._read[file] = seen, signed
            return known[1]
        except OSError:
            return None
