"""What analyses promise: an answer for every program, always the same, and no change of it."""

from __future__ import annotations

import io
import json
from typing import Any, ClassVar

from mplang_analysis import Report, analyses, analysis_of
from mplang_cli import parse

from mplang_core import Program
from mplang_core.ext import print_program, printable
from mplang_testing import probe
from mplang_testing.strategies import traced_programs
from mplang_testing.suite import Suite, complain, for_all

SEED = 2  # of the hashes of strings in the other process


class AnalysisSuite(Suite, kit=True):
    """An analysis tells something of every program, and the same each time.

    Attributes:
        name: its name in the group ``mplang.analyses``.
        examples: how many random programs each test tries.

    Example:
        >>> class TestCosts(AnalysisSuite):
        ...     name = "costs"
    """

    name: ClassVar[str]
    examples: ClassVar[int] = 30

    def test_it_is_found_by_its_name(self) -> None:
        """It is installed, and documented: tools show the first line."""
        if self.name not in analyses():
            complain(
                f"no analysis {self.name!r} is installed",
                expected=f'{self.name} = "package.module:function" in mplang.analyses',
                got=analyses(),
                fix="add the entry point, and install the package again",
            )
        if not (analysis_of(self.name).__doc__ or "").strip():
            complain(
                f"the analysis {self.name} is not documented",
                expected="a docstring, whose first line tools show",
                got="none",
                fix="write one",
            )

    def test_every_program_has_a_report(self) -> None:
        """It gives a Report of any valid program, whose data is plain and whose text is safe."""
        for_all(
            traced_programs(),
            lambda program: _check_report(self.name, self._report(program)),
            self.examples,
        )

    def test_the_program_stays_as_it_is(self) -> None:
        """It changes nothing of a program: its worker runs the same one afterwards."""

        def check(program: Program) -> None:
            before = print_program(program)
            self._report(program)
            if print_program(program) != before:
                complain(
                    f"the analysis {self.name} changes the program",
                    expected=before,
                    got=print_program(program),
                    fix="make a new program instead, by Operation(…) and Graph(…)",
                )

        for_all(traced_programs(), check, self.examples)

    def test_it_finds_the_same_in_another_process(self) -> None:
        """A report depends on the program alone, and on no order of a set."""

        def collect(program: Program) -> None:
            texts[print_program(program)] = self._report(program).to_json()

        texts: dict[str, str] = {}
        for_all(traced_programs(), collect, self.examples)
        question = "mplang_testing.analyses:reports_of"
        found = probe.ask(question, self.name, sorted(texts), seed=SEED)
        for text, told in found.items():
            if json.loads(told) != json.loads(texts[text]):
                complain(
                    f"the analysis {self.name} finds something else in another process",
                    expected=texts[text],
                    got=told,
                    fix=f"sort what comes from sets; PYTHONHASHSEED={SEED} shows it, for\n{text}",
                )

    def _report(self, program: Program) -> Any:
        try:
            return analysis_of(self.name)(program)
        except Exception as error:
            complain(
                f"the analysis {self.name} fails for a valid program",
                expected="a Report; what it does not know it says",
                got=f"{type(error).__name__}: {error}",
                fix=f"give the careful answer for ops of others; it fails for\n{program}",
            )


def reports_of(name: str, texts: list[str]) -> dict[str, str]:
    """Return the reports of programs, as the other process finds them."""
    return {text: analysis_of(name)(parse(text)).to_json() for text in texts}


def _check_report(name: str, report: Any) -> None:
    if not isinstance(report, Report):
        complain(
            f"the analysis {name} gives a {type(report).__name__}",
            expected="a subclass of mplang_analysis.Report",
            got=repr(report)[:200],
            fix="give a frozen dataclass with tables() and to_dict()",
        )
    try:
        json.dumps(report.to_dict(), allow_nan=False)
        json.loads(report.to_json())
        text, page, terminal = str(report), report.to_html(), _in_terminal(report)
    except Exception as error:
        complain(
            f"the report of {name} cannot be shown",
            expected="to_dict() of dicts, lists, texts and finite numbers; tables() of texts",
            got=f"{type(error).__name__}: {error}",
            fix="write values as texts, and what is not a number as None",
        )
    for how, shown in (("str()", text), ("to_html()", page), ("rich()", terminal)):
        if printable(shown, keep="\n") != shown:
            complain(
                f"the report of {name} is not safe to print",
                expected=f"{how} of printable characters: texts of programs are not trusted",
                got=printable(shown, keep="\n")[:400],
                fix="write texts by mplang_core.ext.printable, names of columns among them",
            )
    if not text.strip():
        complain(
            f"the report of {name} is empty",
            expected="at least a table with a title",
            got=repr(text),
            fix="say that nothing was found",
        )


def _in_terminal(report: Report) -> str:
    """Return what rich prints of a report, which it renders only then."""
    from rich.console import Console

    shown = io.StringIO()
    Console(file=shown, width=120, no_color=True, force_terminal=False).print(report.rich())
    return shown.getvalue()
