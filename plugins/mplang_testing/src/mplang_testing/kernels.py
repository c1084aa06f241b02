"""What kernels promise: to do what their ops say."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from mplang_analysis import side_channels_of
from mplang_trace import record

from mplang_core import BaseType, MPLangError, Program, parse
from mplang_core.ext import (
    Mode,
    PartyError,
    codecs,
    decode,
    encode,
    from_bytes,
    op_defs,
    print_program,
    to_bytes,
)
from mplang_testing.declarations import DeclarationSuite, execute
from mplang_testing.sample import Sample, local_program
from mplang_testing.suite import complain, numbered
from mplang_testing.traffic import Traffic, alike, traffic
from mplang_testing.values import extremes, hard_values, same

SEED = 20  # of random operands
MAX_EXTREMES = 4
LONG, MANY_TIMES = 1.0, 20.0  # seconds of the processor, and how many times those of usual data
RANDOM_RUNS = 40  # a draw of one bit is the same in all of them once in 10**12


class KernelSuite(DeclarationSuite, kit=True):
    """The kernels of a family give what its ops promise, however the program came to them.

    The samples run on the simulator.

    Attributes:
        family: the family of feops.
        samples: uses of its feops, with data. Say by ``expect`` what is right.

    Example:
        >>> import mplang_testing.dialect
        >>> X = np.int64([1, 2])
        >>> class TestKernels(KernelSuite):
        ...     family = "kit"
        ...     samples = (Sample("kit.add", X, X, expect=lambda y: (y == 2 * X).all()),)
    """

    family: ClassVar[str]
    samples: ClassVar[Sequence[Sample]] = ()

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the samples."""
        names = numbered([sample.name or sample.op for sample in self.samples])
        return {"sample": dict(zip(names, self.samples, strict=True))}

    def test_there_are_samples_with_data(self) -> None:
        """Something of the family runs at all, on data."""
        without = [
            sample
            for sample in self.samples
            if not sample.has_data or sample.op.partition(".")[0] != self.family
        ]
        if without or not self.samples:
            complain(
                f"the samples do not fit the family {self.family!r}",
                expected="samples of its feops, each with its data",
                got=without or "no sample",
                fix="give arrays, and values Of other types; types alone are for FeopSuite",
            )

    def test_results_are_of_the_inferred_types(self, sample: Sample) -> None:
        """Every result is what type inference said it would be, and the right one."""
        program = sample.trace()
        results = self._run(sample, program)
        for i, (result, kind) in enumerate(zip(results, _kinds(program), strict=True)):
            for rank, value in enumerate(result):
                wrong = kind.mismatch(value)
                if wrong:
                    _broken_promise(sample, f"result {i} at party {rank}", wrong)
        shown = [tuple(result) if sample.parties > 1 else result[0] for result in results]
        if sample.expect is not None and not sample.expect(*shown):
            complain(
                f"{sample} gives a wrong result",
                expected="what the sample's expect says",
                got=shown,
                fix="correct the kernel, or the sample",
            )

    def test_results_can_be_sent_if_their_type_can(self, sample: Sample) -> None:
        """A result of a type with a codec is written and read again."""
        program = sample.trace()
        results = self._run(sample, program)
        for result, kind in zip(results, _kinds(program), strict=True):
            for value in result:
                if kind.name in codecs and not same(
                    kind, decode(kind, *encode(kind, value)), value
                ):
                    complain(
                        f"a result of {sample} does not survive its codec",
                        expected=value,
                        got=decode(kind, *encode(kind, value)),
                        fix="have the kernel give values of the one form that the codec reads",
                    )

    def test_operands_stay_as_they_are(self, sample: Sample) -> None:
        """A kernel does not write into its operands: others read them, too."""
        given = [sample.data(rank) for rank in range(sample.parties)]
        before = [_prints(sample, data) for data in given]
        self._run(sample, sample.trace(), given)
        for rank, data in enumerate(given):
            for i, (old, new) in enumerate(zip(before[rank], _prints(sample, data), strict=True)):
                if old != new:
                    complain(
                        f"{sample} changed its operand {i} at party {rank}",
                        expected="operands are read only",
                        got="other bytes than before",
                        fix="copy before writing",
                    )

    def test_read_only_operands_are_taken(self, sample: Sample) -> None:
        """Constants, and what came from another party, cannot be written to."""
        given = [sample.data(rank) for rank in range(sample.parties)]
        for value in (value for data in given for value in data if isinstance(value, np.ndarray)):
            value.flags.writeable = False
        self._run(sample, sample.trace(), given)

    def test_a_program_that_was_sent_gives_the_same(self, sample: Sample) -> None:
        """The program is all that a kernel needs: no Python object stays behind."""
        program = sample.trace()
        expected = self._run(sample, program)
        for how, again in (
            ("bytes", from_bytes(to_bytes(program))),
            ("text", parse(print_program(program))),
        ):
            self._agree(sample, f"as {how}", program, expected, self._run(sample, again))

    def test_both_modes_give_the_same(self, sample: Sample) -> None:
        """Op by op or whole: the results are the same."""
        program = sample.trace()
        expected = self._run(sample, program)
        self._agree(
            sample, "in launch mode", program, expected, self._run(sample, program, mode="launch")
        )

    def test_random_results_differ(self, sample: Sample) -> None:
        """Results of a sample with ``random=True`` are drawn anew in each run."""
        if not sample.random:
            return
        program = sample.trace()
        first = self._run(sample, program)
        for _ in range(RANDOM_RUNS):
            if not _all_same(program, first, self._run(sample, program)):
                return
        complain(
            f"{sample} gives the same in {RANDOM_RUNS + 1} runs",
            expected="results that differ, as random=True says",
            got=first,
            fix="leave random=True out, or have the kernel draw from the operating system",
        )

    def test_what_is_total_never_fails(self, sample: Sample) -> None:
        """An op with ``total=True`` takes extreme and random numbers, and tables of any rows."""
        op, _ = local_program(sample.build())
        op_def = op_defs.get(op.opcode)
        if op_def is None or op_def.may_fail(op):
            return
        program = sample.trace()
        for what, given in _extreme_operands(sample):
            try:
                with self.make(sample.parties) as host, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of NumPy, of an overflow
                    execute(host, program, given)
            except MPLangError as error:
                complain(
                    f"{sample} fails, and {op.opcode} declares total=True",
                    expected=f"a result for {what}",
                    got=f"{error} ({error.__cause__!r})",
                    fix="give a result for all values, or leave total=True out: whether it fails "
                    "tells everyone of its operands",
                )

    def test_messages_and_work_depend_on_values_only_if_it_says_so(self, sample: Sample) -> None:
        """An op whose messages or work other numbers change has a ``SideChannelRule``.

        Time is that of the processor. What it takes by tables of many rows is not such a thing.
        """
        program = sample.trace()
        op, _ = local_program(sample.build())
        declared = side_channels_of(op)
        given = [sample.data(rank) for rank in range(sample.parties)]
        first, _ = self._observe(sample, program, given)  # compiles, and imports what it needs
        usual, seconds = self._observe(sample, program, given)
        for what, changed in itertools.islice(_extreme_operands(sample), MAX_EXTREMES):
            links, longer = self._observe(sample, program, changed)
            noisy = first != usual  # sizes by chance, as those of CHEETAH
            if links is not None and not alike(links, usual or {}, noisy) and not declared.sizes:
                _tells(sample, "sends other messages", "sizes", what, usual, links)
            if longer > LONG and longer > MANY_TIMES * seconds and not declared.duration:
                _tells(sample, "takes far longer", "duration", what, f"{seconds} s", f"{longer} s")

    def _observe(
        self, sample: Sample, program: Program, given: Sequence[Sequence[Any]]
    ) -> tuple[Traffic | None, float]:
        """Run a program; return messages by link, none if it fails, and the processor's time."""
        with self.make(sample.parties) as host, record(host) as recording:
            begin = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    execute(host, program, given)
            except MPLangError:  # another row tells that
                return None, 0.0
            seconds = time.process_time() - begin
        return traffic(recording), seconds

    def test_what_is_no_operand_ends_in_an_error_of_mplang(self, sample: Sample) -> None:
        """A wrong operand is a PartyError that names the op, and the next run works."""
        program = sample.trace()
        with self.make(sample.parties) as host:
            for i, wrong in _wrong_operands(sample):
                given = [sample.data(rank) for rank in range(sample.parties)]
                for data in given:
                    data[i] = wrong
                try:
                    execute(host, program, given)
                except PartyError as error:
                    if error.op:
                        continue
                    got: Any = f"a PartyError without an op: {error}"
                except MPLangError:
                    continue
                except (Exception, SystemExit) as error:
                    got = f"{type(error).__name__}: {error}"
                else:
                    continue  # it makes sense of that as well
                complain(
                    f"{sample} with a {type(wrong).__name__} as operand {i} fails in a wrong way",
                    expected="PartyError, or another error of mplang",
                    got=got,
                    fix="raise KernelError or RunError, with a text for the log of the party",
                )
            execute(host, program, [sample.data(rank) for rank in range(sample.parties)])

    # --

    def _run(
        self,
        sample: Sample,
        program: Program,
        given: Sequence[Sequence[Any]] | None = None,
        mode: Mode = "standard",
    ) -> list[list[Any]]:
        """Run a program on the sample's data: per result a list of one value per party."""
        given = given or [sample.data(rank) for rank in range(sample.parties)]
        try:
            with self.make(sample.parties) as host:
                return execute(host, program, given, mode)
        except PartyError as error:
            if "broke its promise" in str(error):
                _broken_promise(sample, "a result", str(error))
            cause = f" ({error.__cause__!r})" if error.__cause__ else ""
            complain(
                f"{sample} does not run",
                expected="a sample that its kernel can do",
                got=f"{error}{cause}",
                fix="correct the kernel, or the sample",
            )

    def _agree(
        self,
        sample: Sample,
        how: str,
        program: Program,
        expected: list[list[Any]],
        got: list[list[Any]],
    ) -> None:
        if sample.random:
            return
        if not _all_same(program, expected, got):
            complain(
                f"{sample} gives another result {how}",
                expected=expected,
                got=got,
                fix="have the kernel depend on operands and attributes alone; where it draws "
                "random numbers on purpose, say so by random=True in the sample",
            )


def _kinds(program: Program) -> list[BaseType]:
    return [value.type.base for value in program.graph.outputs]  # type: ignore[union-attr]


def _prints(sample: Sample, data: Sequence[Any]) -> list[Any]:
    """Return the bytes of each operand; of those without a codec, nothing is known."""
    return [
        [bytes(buffer) for buffer in encode(kind, value)[1]] if kind.name in codecs else None
        for kind, value in zip(sample.operands, data, strict=True)
    ]


def _extreme_operands(sample: Sample) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield what is special of each value, and operands whose tensors consist of it."""
    given = [sample.data(rank) for rank in range(sample.parties)]
    tensors = [i for i, value in enumerate(given[0]) if isinstance(value, np.ndarray)]
    for turn in range(max((len(extremes(given[0][i].dtype)) for i in tensors), default=0)):
        filled, told = [list(data) for data in given], set()
        for i in tensors:
            found = extremes(given[0][i].dtype)
            value = found[turn % len(found)]
            told.add(str(value))
            for data in filled:
                data[i] = np.full_like(data[i], value)
        yield f"tensors of {' and '.join(sorted(told))}", filled
    random = np.random.default_rng(SEED)
    for i, kind in enumerate(sample.operands):
        for what, value in hard_values(kind, given[0][i], random):
            changed = [list(data) for data in given]
            for data in changed:
                data[i] = value
            yield f"operand {i} of {what}", changed


def _tells(sample: Sample, does: str, field: str, what: str, usual: Any, got: Any) -> NoReturn:
    complain(
        f"{sample} {does} for {what}, and does not say so",
        expected=f"{usual}, as for its own data",
        got=got,
        fix=f"declare SideChannelRule(lambda op: SideChannels({field}=…)) with the operands upon "
        "which it depends: rules are asked about it",
    )


def _all_same(program: Program, one: list[list[Any]], other: list[list[Any]]) -> bool:
    """Return whether two runs gave the same results."""
    return all(
        same(kind, a, b)
        for kind, mine, theirs in zip(_kinds(program), one, other, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )


def _wrong_operands(sample: Sample) -> Iterator[tuple[int, Any]]:
    for i, _ in enumerate(sample.operands):
        yield from ((i, wrong) for wrong in (object(), "text", np.zeros((9, 9)), -1))


def _broken_promise(sample: Sample, what: str, wrong: str) -> None:
    complain(
        f"the kernel of {sample} breaks the promise of its op: {what}",
        expected="a value of the type that was inferred",
        got=wrong,
        fix="correct the kernel, or the type inference of the op",
    )
