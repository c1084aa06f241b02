"""What passes promise: the same results, nothing more disclosed, the same program everywhere."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from mplang_analysis import disclosure
from mplang_cli import parse
from mplang_simulator import Simulator

from mplang_core import ClusterSpec, Program, verify
from mplang_core.ext import HostVar, SimpHost, VerifyError, passes, print_program
from mplang_testing import probe
from mplang_testing.strategies import traced_programs
from mplang_testing.suite import Suite, complain, for_all
from mplang_testing.waiting import DEADLINE

SEED = 2  # of the hashes of strings in the other process


class PassSuite(Suite, kit=True):
    """A pass changes how a program runs, and nothing that anybody can tell.

    Each party applies the passes by itself, so all of them have to get the same program.

    Attributes:
        name: its name in the group ``mplang.passes``.
        examples: how many random programs each test tries.

    Example:
        >>> class TestFusion(PassSuite):
        ...     name = "fuse_pcalls"
    """

    name: ClassVar[str]
    examples: ClassVar[int] = 30

    def test_it_is_found_by_its_name(self) -> None:
        """It is installed, and documented."""
        found = passes.get(self.name)
        if found is None or not (found.__doc__ or "").strip():
            complain(
                f"no pass {self.name!r} is installed, or it has no docstring",
                expected=f"an entry point {self.name} of mplang.passes, and mplang_passes",
                got=passes.known(),
                fix="add both, and install the package again",
            )

    def test_programs_stay_valid_and_what_they_were(self) -> None:
        """What it gives passes the verifier, with the same inputs and outputs; its input stays."""

        def check(program: Program) -> None:
            before = print_program(program)
            made = self._made(program)
            if print_program(program) != before:
                self._wrong("changes the program that it is given", before, program)
            types = [[v.type for v in each] for each in (program.graph.inputs, made.graph.inputs)]
            outs = [[v.type for v in each] for each in (program.graph.outputs, made.graph.outputs)]
            if types[0] != types[1] or outs[0] != outs[1] or made.mask != program.mask:
                self._wrong("changes the types of a program", before, made)

        for_all(traced_programs(), check, self.examples)

    def test_results_stay_the_same(self) -> None:
        """The simulator gives the same with it as without it."""

        def check(program: Program) -> None:
            made, cluster = self._made(program), ClusterSpec.simple(len(program.mask))
            with self._left_out(), Simulator(cluster, timeout=DEADLINE) as host:
                one, other = _results(host, program), _results(host, made)
            if not _same(one, other):
                self._wrong("changes the results of a program", one, other)

        for_all(traced_programs(), check, self.examples)

    def test_nothing_more_is_disclosed(self) -> None:
        """Who learns what by which message is what the owners were shown, or less."""

        def check(program: Program) -> None:
            before, after = _told(program), _told(self._made(program))
            if after - before:
                self._wrong("has a program disclose more", sorted(before), sorted(after - before))

        for_all(traced_programs(), check, self.examples)

    def test_all_parties_get_the_same_program(self) -> None:
        """Another process, with other hashes of strings, makes the same program of it."""

        def collect(program: Program) -> None:
            made[print_program(program)] = self._made(program).digest

        made: dict[str, str] = {}
        for_all(traced_programs(), collect, self.examples)
        found = probe.ask("mplang_testing.passes:digests_of", self.name, sorted(made), seed=SEED)
        wrong = [text for text, digest in found.items() if digest != made[text]]
        if wrong:
            self._wrong(
                f"makes another program with PYTHONHASHSEED={SEED}", "the same digest", wrong[0]
            )

    @contextlib.contextmanager
    def _left_out(self) -> Iterator[None]:
        """No party applies the pass by itself."""
        found: Any = passes.get(self.name)
        provider = passes.provider(self.name)
        passes.remove(self.name)
        try:
            yield
        finally:
            passes.add(self.name, found, provider=provider or "mplang-testing")

    def _made(self, program: Program) -> Program:
        found: Any = passes.get(self.name)
        try:
            made = found(program)
            verify(made)
        except Exception as error:
            kind = "an invalid program" if isinstance(error, VerifyError) else "a failure"
            self._wrong(f"ends in {kind}", program, f"{type(error).__name__}: {error}")
        result: Program = made
        return result

    def _wrong(self, what: str, expected: object, got: object) -> None:
        complain(
            f"the pass {self.name} {what}",
            expected=expected,
            got=got,
            fix="leave alone what it does not know: ops of others say by interfaces what they do",
        )


def digests_of(name: str, texts: list[str]) -> dict[str, str]:
    """Return the digests of what a pass makes of programs, as the other process makes it."""
    found: Any = passes.get(name)
    return {text: found(parse(text)).digest for text in texts}


def _results(host: SimpHost, program: Program) -> list[list[Any]]:
    given = [_data(value.type, host.world_size) for value in program.graph.inputs]
    return [host.fetch(each) for each in host.evaluate(program, given)]


def _data(kind: Any, parties: int) -> HostVar:
    """Return data of an input: another number at each party that holds it."""
    numbers = [np.full(kind.base.shape, rank + 2, kind.base.dtype.numpy) for rank in range(parties)]
    return HostVar([x if rank in kind.pmask else None for rank, x in enumerate(numbers)])


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def _told(program: Program) -> Counter[tuple[Any, ...]]:
    rows = disclosure(program).rows
    return Counter((r.what, r.sender, r.receiver, r.form, r.payload, r.discloses) for r in rows)
