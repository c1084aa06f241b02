"""What admission checks promise: an answer for every program, and a reason for each refusal."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from mplang_analysis import Submission, admission_checks

from mplang_core import ClusterSpec, Program, TraceContext, constant, trace, uniform_cond
from mplang_core.ext import ConfigError, StrictModel, print_program
from mplang_testing.strategies import traced_programs
from mplang_testing.suite import Suite, complain, for_all

PARTIES = tuple(f"party{rank}" for rank in range(8))


class AdmissionSuite(Suite, kit=True):
    """An admission check says of every program whether it may run, and why not.

    Attributes:
        name: its name in the group ``mplang.admission``.
        settings: the fields of its section in a worker's configuration.
        admitted: functions of no arguments whose programs it lets run.
        refused: functions whose programs it refuses, each with a part of the reason.
        parties: how many parties the programs have.
        examples: how many random programs are tried.

    Example::

        class TestFewOps(AdmissionSuite):
            name = "few_ops"
            settings = {"most": 2}
            admitted = (lambda: mp.constant(1),)
            refused = {"3 ops": many_ops}
    """

    name: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    admitted: ClassVar[Sequence[Callable[[], Any]]]
    refused: ClassVar[Mapping[str, Callable[[], Any]]]
    parties: ClassVar[int] = 2
    examples: ClassVar[int] = 30

    def test_its_fields_are_checked(self) -> None:
        """It is a StrictModel, so that a misspelt field keeps a worker from starting."""
        if not isinstance(self._check, StrictModel):
            complain(
                f"the admission check {self.name} is not a StrictModel",
                expected="a subclass of mplang_core.ext.StrictModel with a method refusals",
                got=type(self._check).__mro__,
                fix="have its settings as fields, each with a type",
            )
        with pytest.raises(ConfigError, match="no_such_field"):
            admission_checks({self.name: {**self.settings, "no_such_field": 1}})

    def test_what_is_admitted(self) -> None:
        """It has nothing against these programs."""
        for function in self.admitted:
            reasons = self._reasons(self._program(function))
            if reasons:
                complain(
                    f"{self.name} refuses a program that it admits",
                    expected="no reasons",
                    got=reasons,
                    fix="correct the check, or the sample",
                )

    def test_what_is_refused(self) -> None:
        """It refuses these programs, for the reason that is given."""
        assert self.refused, "give programs that it refuses"
        for reason, function in self.refused.items():
            reasons = self._reasons(self._program(function))
            if not any(reason in text for text in reasons):
                complain(
                    f"{self.name} does not refuse a program",
                    expected=f"a reason with {reason!r}",
                    got=reasons,
                    fix="correct the check, or the sample",
                )

    def test_what_is_refused_in_a_branch(self) -> None:
        """It refuses them in a branch of ``mp.uniform_cond``, too, for whatever reason.

        If that makes no sense for the check, name this test in ``xfail``, with the reason.
        """
        for reason, function in self.refused.items():
            program = self._program(functools.partial(_in_a_branch, function))
            if not self._reasons(program):
                complain(
                    f"{self.name} does not refuse a program if it is in a branch",
                    expected=f"a reason, as {reason!r}",
                    got="no reasons",
                    fix="look at program.graph.walk(): graph.ops are those outside of regions",
                )

    def test_every_program_gets_an_answer(self) -> None:
        """It never fails: of a check that does, a worker's whole cluster would hear."""

        def check(program: Program) -> None:
            before = print_program(program)
            first, again = self._reasons(program), self._reasons(program)
            if first != again or print_program(program) != before:
                complain(
                    f"{self.name} does not answer the same twice, or changes the program",
                    expected=first,
                    got=again,
                    fix="keep nothing of one program for another",
                )

        for_all(traced_programs(), check, self.examples)

    @property
    def _check(self) -> Any:
        return admission_checks({self.name: dict(self.settings)})[self.name]

    def _program(self, function: Callable[[], Any]) -> Program:
        return trace(TraceContext(ClusterSpec.simple(self.parties)), function).program

    def _reasons(self, program: Program) -> list[str]:
        """Return the reasons of all parties, each of which asks for itself."""
        reasons: list[str] = []
        for party in program.mask:
            given = Submission(program, "coordinator", party, PARTIES[: len(program.mask)])
            try:
                found = self._check.refusals(given)
            except Exception as error:
                complain(
                    f"{self.name} fails for a valid program",
                    expected="reasons, or none",
                    got=f"{type(error).__name__}: {error}",
                    fix=f"it has to know all programs; it fails for\n{program}",
                )
            if isinstance(found, str) or not all(isinstance(text, str) for text in found):
                complain(
                    f"{self.name} gives no list of texts",
                    expected="a sequence of texts",
                    got=repr(found)[:200],
                    fix="return [] where nothing is wrong",
                )
            reasons += found
        return reasons


def _in_a_branch(function: Callable[[], Any]) -> Any:
    return uniform_cond(constant(True), function, function)
