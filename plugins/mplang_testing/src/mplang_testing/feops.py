"""What a family of feops promises."""

from __future__ import annotations

import doctest
import functools
import gc
import inspect
import io
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from typing import Any, ClassVar

import numpy as np
from mplang_analysis import DATA_SET
from mplang_analysis.ext import GROUP_OF_WORDS, is_source_name
from mplang_cli import introspect

from mplang_core import (
    ClusterSpec,
    FeProgram,
    Form,
    TraceContext,
    constant,
    is_feop,
    registry,
    with_ctx,
)
from mplang_core.ext import Effects, FeMeta, FeStateError, OpDef, Operation, meta_of, op_defs
from mplang_testing import probe
from mplang_testing.contracts import ContractSuite
from mplang_testing.refusals import RefusalSuite
from mplang_testing.sample import Sample, local_program, text_of
from mplang_testing.suite import complain, numbered


class FeopSuite(ContractSuite, RefusalSuite, kit=True):
    """Every feop of a family says what it is, and gives the same program each time.

    The file of the subclass is run again in other processes, so it must bear to be imported.

    Attributes:
        family: the family of feops.
        samples: a use of each feop at least; types suffice where data is hard to come by.
        claims_all: see :class:`~mplang_testing.contracts.ContractSuite`.

    Example:
        >>> import mplang_testing.dialect
        >>> from mplang_core import TensorType
        >>> X = TensorType("f32", (3,))
        >>> class TestFeops(FeopSuite):
        ...     family = "kit"
        ...     samples = (Sample("kit.add", X, X), Sample("kit.rank"))
    """

    family: ClassVar[str]
    samples: ClassVar[Sequence[Sample]] = ()

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the family's feops, and the samples."""
        ops = [meta.name for meta in registry.list_ops(self.family)]
        names = numbered([sample.name or sample.op for sample in self.samples])
        return {
            "op": {name: registry.get(name) for name in ops},
            "sample": dict(zip(names, self.samples, strict=True)),
        }

    # -- what it is

    def test_there_is_a_sample_of_every_feop(self) -> None:
        """The family has feops, and none goes untested."""
        there = {meta.name for meta in registry.list_ops(self.family)}
        used = {sample.op for sample in self.samples}
        if not there or there != used:
            complain(
                f"the samples do not fit the family {self.family!r}",
                expected=f"a sample of each of {sorted(there) or '(no feop is registered)'}",
                got=f"{sorted(used)}",
                fix=f"add {sorted(there - used)}, remove {sorted(used - there)}",
            )

    def test_it_is_registered_with_complete_metadata(self, op: Any) -> None:
        """A feop says its name, family, version, dialects, inputs and outputs, and its home."""
        meta = meta_of(op)
        wrong = []
        if not is_feop(op) or not isinstance(meta, FeMeta) or registry.get(meta.name) is not op:
            wrong.append("it is a feop under its own name")
        if meta.family != self.family:
            wrong.append(f"its family is {self.family}")
        takes = any(sample.operands for sample in self.samples if sample.op == meta.name)
        told = {
            "version": meta.version,
            "dialects": meta.dialects,
            "outputs": meta.outputs,
            "inputs": meta.inputs or not takes,
            "provenance": registry.feops.provider(meta.name),
        }
        wrong += [f"it says its {name}" for name, value in told.items() if not value]
        if wrong:
            complain(
                f"{meta.name} is described incompletely",
                expected=", ".join(wrong),
                got=meta,
                fix="complete the fields of @feop or @simple_op",
            )

    def test_it_is_documented_with_an_example_that_runs(self, op: Any) -> None:
        """Who asks ``mplang describe`` gets words, an example, and the configuration's schema."""
        meta, facts = meta_of(op), introspect.describe(op)
        if not facts["doc"] or not facts["example"]:
            complain(
                f"{meta.name} is not documented",
                expected="a docstring with an example (>>>)",
                got=facts["doc"] or "no docstring",
                fix="write what it does, and an Example: section",
            )
        if meta.config_schema is not None and not (facts["config_schema"] or {}).get("properties"):
            complain(
                f"{meta.name} takes a configuration that nobody can look up",
                expected="a pydantic model with fields",
                got=meta.config_schema,
                fix="make config_schema a subclass of mplang_core.config_model.StrictModel",
            )
        report = _run_examples(op, facts["doc"])
        if report:
            complain(
                f"the example of {meta.name} does not run",
                expected="what is written there",
                got=report,
                fix="correct it: it is the first thing that users try",
            )

    def test_its_op_says_what_it_reads(self, sample: Sample) -> None:
        """An op that does not declare it counts as reading all data of its party."""
        opcode = sample.build().pfunc.fn_type
        op_def = op_defs.get(opcode)
        if op_def is not None and op_def.reads is None:
            complain(
                f"{opcode} does not say what it reads of its party's data",
                expected="reads=() if it reads nothing but its operands, else names",
                got="reads=None: its results count as all data of the party",
                fix="declare reads=… in @simple_op or OpDef, and total=True if it cannot fail",
            )
        op, _ = local_program(sample.build())
        names = () if op_def is None else _reads(op_def, op) or ()
        odd = [each for each in names if not (each.startswith(DATA_SET) or is_source_name(each))]
        if odd:
            complain(
                f"{opcode} reads {odd[0]!r}, which rules of owners cannot name",
                expected="a data set, or a name that the package declares",
                got=f"reads={tuple(names)}",
                fix=f"declare it by Words(reads=[{odd[0]!r}]) in an entry point of the group "
                f"{GROUP_OF_WORDS}",
            )

    def test_its_op_says_what_passes_may_do(self, sample: Sample) -> None:
        """Random results are not merged, and whoever makes a key says so."""
        made = sample.build()
        op, _ = local_program(made)
        op_def = op_defs.get(op.opcode)
        if op_def is None:
            return
        if sample.random and op_def.effects is Effects.NONE:
            complain(
                f"{op.opcode} says that its results are a function of its operands, and {sample} "
                "that they are random",
                expected="effects=Effects.FRESH with random=True",
                got="effects=Effects.NONE: a pass makes two runs of it one",
                fix="correct the op, or the sample",
            )
        if _makes_a_key(made) and _reads(op_def, op) == () and op_def.effects is not Effects.FRESH:
            complain(
                f"{op.opcode} makes a key of nothing, and does not say that it is a new one",
                expected="effects=Effects.FRESH: two keys are never made one",
                got=f"effects={op_def.effects}",
                fix="declare it; if the key is read somewhere, declare reads=…",
            )

    # -- the same program each time

    def test_twice_gives_the_same_bytes(self, sample: Sample) -> None:
        """Compiling the same again gives the same, bit by bit."""
        mine, again = text_of(sample.build()), text_of(sample.build())
        _compare(sample, "when it was called again", mine, again)

    def test_other_processes_and_lines_give_the_same_bytes(self, sample: Sample) -> None:
        """Neither hash seeds nor memory addresses nor source lines get into a program."""
        mine = text_of(sample.build())
        (name,) = (name for name, each in self.cases()["sample"].items() if each is sample)
        suite: Any = type(self)
        if _elsewhere(suite, 2, 7)[name] == mine:
            return
        for seed, shift in ((1, 0), (2, 7)):  # which of both does it
            where = f"in another process, with PYTHONHASHSEED={seed}"
            where += f", {shift} lines further down in its file" if shift else ""
            _compare(sample, where, mine, _elsewhere(suite, seed, shift)[name])

    def test_state_cannot_change_the_bytes(self, sample: Sample) -> None:
        """Caches make it faster, and do nothing else; nor does the context or the thread."""
        op: Any = registry.get(sample.op)
        if meta_of(op).state_scope == "process":
            op.__get_state__().clear()
        mine = text_of(sample.build())
        _compare(sample, "with what it keeps in its state", mine, text_of(sample.build()))
        for other in self.samples:
            other.build()
        _compare(sample, "after other programs were made", mine, text_of(sample.build()))
        with with_ctx(TraceContext(ClusterSpec.simple(max(2, sample.parties)))):
            for turn in ("first", "second"):
                again = text_of(sample.build())
                _compare(sample, f"for the {turn} time in another context", mine, again)
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(text_of(sample.build())))
        thread.start()
        thread.join()
        _compare(sample, "in another thread", mine, "".join(found))

    # -- state

    def test_state_is_kept_where_its_scope_says(self, op: Any) -> None:
        """The process keeps nothing that belongs to a context, and not without bounds."""
        meta, ctx = meta_of(op), TraceContext(ClusterSpec.simple(2))
        if meta.state_scope == "ctx":
            _refuses_state(meta, "state without a context", op.__get_state__)
            op.__get_state__(ctx)["kit"] = 1
            if "kit" in op.__get_state__(TraceContext(ctx.cluster_spec)):
                complain(
                    f"{meta.name} shares its state among contexts",
                    expected="state_scope='ctx': another context has another state",
                    got="the same",
                    fix="leave __get_state__ as @feop made it",
                )
            return
        state = op.__get_state__()
        if meta.state_scope == "none":
            _refuses_state(meta, "an entry", lambda: state.__setitem__("kit", 1))
            return
        bound = [constant(ctx, 1), ctx]
        try:
            for value in [*bound, [bound[0]], {"a": (1, {"b": ctx})}]:
                keep = functools.partial(state.__setitem__, "kit", value)
                _refuses_state(meta, f"a {type(bound[0]).__name__} in its process state", keep)
            for i in range(5000):
                state["kit", i] = i
            if len(state) >= 5000:
                complain(
                    f"the process state of {meta.name} grows without bounds",
                    expected="the oldest entries go",
                    got=f"{len(state)} entries",
                    fix="leave __get_state__ as @feop made it",
                )
        finally:
            for key in [key for key in state if key == "kit" or key[:1] == ("kit",)]:
                del state[key]

    def test_nothing_of_a_context_outlives_it(self, sample: Sample) -> None:
        """A feop that was given values lets go of them: no cache holds what belongs to a run."""
        gc.collect()
        gc.freeze()  # the next collections do not look at what was there before
        ref = _trace_and_drop(sample)
        gc.collect()
        if ref() is not None:
            holders = [type(each).__name__ for each in gc.get_referrers(ref())]
            complain(
                f"{sample.op} keeps a context alive that it was used in",
                expected="nothing refers to it after the program was made",
                got=f"it is held by a {', a '.join(holders)}",
                fix="keep runtime values with state_scope='ctx', or not at all; "
                "a module's own dict escapes every check but this one",
            )


def _run_examples(op: Any, doc: str) -> str:
    module = sys.modules[getattr(op, "__module__", type(op).__module__)]
    named = meta_of(op).name
    test = doctest.DocTestParser().get_doctest(doc, dict(vars(module)), named, None, None)
    out = io.StringIO()
    with np.printoptions(legacy=False):
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.write)
    return out.getvalue() if result.failed else ""


def _makes_a_key(made: FeProgram) -> bool:
    """Return whether a result is a key that is made of no operand."""
    is_key = any(kind.form is Form.KEY for kind in made.pfunc.outs_info)
    return is_key and not made.pfunc.ins_info


def _reads(op_def: OpDef, op: Operation) -> tuple[str, ...] | None:
    return op_def.reads(op) if callable(op_def.reads) else op_def.reads


def _compare(sample: Sample, when: str, mine: str, other: str) -> None:
    if mine == other:
        return
    lines = list(unified_diff(mine.split("\n"), other.split("\n"), lineterm="", n=0))[2:]
    diff = [line for line in lines if not line.startswith("@@")][:4]
    complain(
        f"{sample.op} is not deterministic: it gave another program {when}",
        expected="the same bytes for the same arguments",
        got="\n    ".join(["", *(line[:200] for line in diff)]),
        fix="make what differs an explicit attribute, or leave it out of the program (addresses, "
        "counters, the order of sets, source lines)",
    )


@functools.cache
def _elsewhere(suite: type[FeopSuite], seed: int, shift: int) -> dict[str, str]:
    """Return the text of each sample in a new process; its file begins with so many empty lines."""
    file = inspect.getfile(suite)
    question = f"{probe.__name__}:texts"
    try:
        found: dict[str, str] = probe.ask(
            question, file, suite.__module__, suite.__qualname__, shift, seed=seed
        )
    except RuntimeError as error:
        complain(
            f"{file} does not run in another process",
            expected="a file that can be imported, with what stands on sys.path now",
            got=error,
            fix="have it need neither fixtures nor arguments when it is imported",
        )
    return found


def _trace_and_drop(sample: Sample) -> weakref.ref[TraceContext]:
    ctx = TraceContext(ClusterSpec.simple(sample.parties))
    sample.trace(ctx)
    return weakref.ref(ctx)


def _refuses_state(meta: FeMeta, what: str, keep: Callable[[], Any]) -> None:
    try:
        keep()
    except FeStateError:
        return
    complain(
        f"{meta.name} keeps state that its scope forbids",
        expected=f"state_scope={meta.state_scope!r} refuses {what} by FeStateError",
        got="it was kept",
        fix="leave __get_state__ as @feop made it, and keep what belongs to a run in a context",
    )
