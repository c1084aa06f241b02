"""Faults of feops and kernels, planted in what is right otherwise: the kit names them."""

from __future__ import annotations

import pytest
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere


# -- feops

FEOP = (
    HEAD
    + '''
counter = itertools.count()
kept = []

@mp.simple_op("fault.scale", reads={reads})
def scale(x: TensorType, *, by: int, tags: tuple = ()) -> TensorType:
    """Scales."""
    {infer}
    return x

@mp.kernel("fault.scale")
def kernel(ctx, x, *, by, tags):
    {kernel}

@mp.feop(
    name="fault.op",
    dialects=("fault",),
    inputs=({{"kind": "Tensor"}},),
    outputs=({{"kind": "Tensor"}},),
    {meta}
)
def op(x, **options):
    """Scales.

    Example:
        >>> 1 + 1
        2
    """
    {feop}

{after}

class TestFault(FeopSuite):
    family = "fault"
    samples = (Sample("fault.op", X), Sample("fault.scale", X, attrs={{"by": 2}}))

class TestFaultyKernel(KernelSuite):
    family = "fault"
    samples = (Sample("fault.scale", X, attrs={{"by": 2}}),)
'''
)
RIGHT = {
    "reads": "()",
    "infer": "pass",
    "kernel": "return x * by",
    "meta": "",
    "feop": "return scale(x, by=2)",
    "after": "",
}


def feop(**changes):
    return FEOP.format(**{**RIGHT, **changes})


def test_without_a_fault_all_pass_but_the_undocumented(run):
    outcomes = run(feop()).parseoutcomes()
    assert outcomes.pop("failed") == 3  # fault.scale has neither example nor inputs nor outputs
    assert outcomes.keys() == {"passed"}


@pytest.mark.parametrize(
    ("body", "test", "when"),
    [
        ("return scale(x, by=next(counter))", "twice", "when it was called again"),
        ("return scale(x, by=id(object) % 99991)", "other_processes", "in another process*"),
        ("return scale(x, by=1, tags=list(set('abcdefghijkl')))", "other_processes", "SEED=?"),
        ("return scale(x, by=op.__code__.co_firstlineno)", "other_processes", "7 lines further"),
        (
            "kept.append(1); return scale(x, by=int(len(kept) > 3))",
            "state_cannot",
            "after other programs",
        ),
        ("return scale(x, by=threading.get_ident())", "state_cannot", "in another thread"),
        (
            "state = op.__get_state__(); state['n'] = 1 + state.get('n', 0)\n"
            "    return scale(x, by=state['n'])",
            "state_cannot",
            "with what it keeps in its state",
        ),
    ],
)
def test_a_feop_that_is_not_deterministic(caught, body, test, when):
    caught(
        feop(feop=body, meta='state_scope="process",'),
        f"{test} and fault.op",
        f"fault.op is not deterministic: it gave another program *{when}",
        "expected: the same bytes for the same arguments",
        "-* = *",
        "+* = *",
        "to do: *make what differs an explicit attribute",
    )


def test_an_op_that_does_not_say_what_it_reads(caught):
    caught(
        feop(reads="None"),
        "says_what_it_reads and fault.scale",
        "fault.scale does not say what it reads of its party's data",
        "expected: reads=() *",
    )


def test_an_op_that_reads_what_no_rule_can_name(caught):
    caught(
        feop(reads="('thermometer',)"),
        "says_what_it_reads and fault.scale",
        "fault.scale reads 'thermometer', which rules of owners cannot name",
        "to do: *Words(reads=*thermometer*)*mplang.words",
    )


def test_a_process_state_that_takes_a_runtime_value(caught):
    after = "plain = {}\nop.__get_state__ = lambda ctx=None: plain"
    caught(
        feop(meta='state_scope="process",', after=after),
        "state_is_kept",
        "fault.op keeps state that its scope forbids",
        "expected: state_scope='process' refuses a * in its process state by FeStateError",
        "got: *it was kept",
    )


@pytest.mark.parametrize(
    ("body", "holder"),
    [
        ("kept.append(x); return scale(x, by=2)", "TraceVar"),
        ("op.__get_state__()['last'] = lambda: x; return scale(x, by=2)", "*"),
    ],
)
def test_a_runtime_value_that_escapes_the_state(caught, body, holder):
    caught(
        feop(feop=body, meta='state_scope="process",'),
        "outlives and fault.op",
        "fault.op keeps a context alive that it was used in",
        f"got: *it is held by a {holder}",
    )


@pytest.mark.parametrize(
    ("before", "after", "test", "message"),
    [
        (
            'outputs=({"kind": "Tensor"},)',
            'outputs=({"kind": "no.such"},)',
            "kinds",
            "names a kind",
        ),
        ('inputs=({"kind": "Tensor"},)', "inputs=()", "declares_holds and fault.op", "any type"),
        (
            'dialects=("fault",)',
            'dialects=("fault",), execution_model="in_controller"',
            "controller and fault.op",
            "runs at the controller, which has no kernel",
        ),
    ],
)
def test_metadata_that_does_not_hold(caught, before, after, test, message):
    source = feop()
    assert before in source
    caught(source.replace(before, after, 1), test, f"fault.op *{message}*")


COMPILER = (
    HEAD
    + '''
from mplang_cache import compiled_once
from mplang_core.ext import flatten

@mp.feop(
    name="fault.compile",
    op_kind="compiler",
    dialects=("kit",),
    inputs=({"kind": "Tensor"},),
    outputs=({"kind": "Tensor"},),
    {meta}
    state_scope="process",
    capabilities={{"caching": {{"scope": "process"}}}},
)
def compiler(fn, signature):
    """Compiles a function that adds its operands."""
    def make():
        (kind,) = set(signature.operands)
        pfunc = mp.PFunction("kit.add", (kind, kind), (kind,))
        return mp.FeProgram(pfunc, flatten(signature.args)[1], flatten(0)[1])
    return {body}

class TestFault(FeopSuite):
    family = "fault"
    samples = (Sample("fault.compile", lambda x, y: x + y, X, X),)
'''
)
MINE = "understands=lambda fn, types: False,"


@pytest.mark.parametrize(
    ("meta", "body", "test", "message"),
    [
        (MINE, "make()", "cached", "fault.compile is not cached as it declares"),
        (
            MINE,
            "compiler.__get_state__().get_or_make(signature.operands, make)",
            "cached",
            "got: *the program of the old value",
        ),
        ("", "make()", "claims", "that names no frontend: no answer"),
        ("understands=lambda fn, types: None,", "make()", "claims", "names no frontend: None"),
        ("understands=lambda fn, types: True,", "make()", "claims", "names no frontend: True"),
    ],
)
def test_a_compiler_that_breaks_its_contract(caught, meta, body, test, message):
    source = COMPILER.replace("{meta}", meta).replace("{body}", body)
    caught(source.replace("{{", "{").replace("}}", "}"), test, message)


def test_a_compiler_that_keeps_it(run):
    body = "compiled_once(compiler, fn, signature, make)"
    source = COMPILER.replace("{meta}", MINE).replace("{body}", body)
    found = run(source.replace("{{", "{").replace("}}", "}"), "-k", "cached or claims or declares")
    assert found.parseoutcomes().keys() == {"passed", "deselected"}


@pytest.mark.parametrize(
    ("body", "message"),
    [("make()", "got: *it was compiled"), ("without_line()", "got: *TraceError: it failed")],
)
def test_a_compiler_that_does_not_tell_where_a_function_fails(caught, body, message):
    called = """
    def called():
        return fn(*[np.ones(kind.shape) for kind in signature.operands])
    def without_line():
        try:
            called()
        except Exception as error:
            raise mp.errors.TraceError(f"it failed: {error}") from error
        return make()
    return {body}"""
    source = COMPILER.replace("{meta}", MINE).replace("    return {body}", called)
    source = source.replace("{body}", body).replace("{{", "{").replace("}}", "}")
    caught(source, "error_of_a_function", "does not say where a function fails", message)


def test_a_compiler_that_takes_a_result_that_is_no_value(caught):
    body = """
    from mplang_core.ext import raised
    try:
        fn(*[np.ones(kind.shape) for kind in signature.operands])
    except Exception as error:
        raise mp.errors.TraceError(f"{raised(error)}it failed") from error
    return make()"""
    source = COMPILER.replace("{meta}", MINE).replace("    return {body}", body)
    source = source.replace("{{", "{").replace("}}", "}")
    caught(source, "error_of_a_function", "where a function gives_no_value", "it was compiled")


def test_a_refusal_without_the_users_line(caught):
    caught(
        feop(feop="if options: raise mp.errors.TraceError('no')\n    return scale(x, by=2)"),
        "wrong_arguments and fault.op",
        "fault.op with a wrong keyword fails in a wrong way",
        "got: *no line in TraceError: no",
    )


def test_random_results_of_an_op_that_passes_may_merge(caught):
    effects = "None, effects=mp.ir.Effects.NONE"
    source = feop(reads=effects).replace('attrs={"by": 2}),)', 'attrs={"by": 2}, random=True),)')
    source = source.replace('X, attrs={"by": 2}))', 'X, attrs={"by": 2}, random=True))')
    caught(source, "passes_may_do and fault.scale", "expected: effects=Effects.FRESH with random=*")


KEY = """
from dataclasses import dataclass
from mplang_core.types import type_classes

@dataclass(frozen=True)
class Key(mp.BaseType):
    name = "fault.key"
    form = mp.Form.KEY

    def params(self):
        return ()

    @classmethod
    def from_params(cls, params):
        return cls()

type_classes.add("fault.key", Key, provider="fault")

@mp.simple_op("fault.keygen", reads=())
def keygen() -> Key:
    '''Makes a key.'''
    return Key()
"""


def test_a_key_that_passes_may_merge(caught):
    source = feop(after=KEY).replace("samples = (", 'samples = (Sample("fault.keygen"), ', 1)
    caught(source, "passes_may_do and fault.keygen", "fault.keygen makes a key of nothing, and *")


def test_metadata_that_says_too_little(caught):
    caught(feop(), "metadata and fault.scale", "expected: it says its outputs, it says its inputs")
    caught(feop(), "documented and fault.scale", "expected: a docstring with an example*")


def test_an_example_that_does_not_run(caught):
    source = feop().replace("        2\n", "        3\n")
    caught(source, "documented and fault.op", "the example of fault.op does not run", "Expected:*")


def test_a_feop_without_a_sample(caught):
    source = feop().replace('(Sample("fault.op", X), ', "(").replace("2}))", "2}),)")
    caught(source, "sample_of_every_feop", "to do: *add ?'fault.op'?, remove ??")


def test_a_configuration_that_is_not_checked(caught):
    after = "import pydantic\nclass Loose(pydantic.BaseModel):\n    by: int = 2\n"
    source = feop().replace("counter =", after + "\ncounter =")
    source = source.replace('dialects=("fault",)', 'config_schema=Loose, dialects=("fault",)')
    caught(source, "configuration", "fault.op takes a wrong configuration", "to do: *StrictModel*")


def test_an_attribute_that_breaks_the_verifier(caught):
    caught(
        feop(infer="{1: 'one', 2: 'two'}[by]"),
        "damaged_attributes",
        "fault.scale with by = -1 breaks the verifier",
        "got: *KeyError: -1",
    )


# -- kernels


@pytest.mark.parametrize(
    ("body", "test", "message"),
    [
        ("return (x * by).astype('f4')", "inferred_types", "breaks the promise of its op"),
        ("return x * by * next(counter)", "both_modes", "gives another result in launch mode"),
        ("return x * by * next(counter)", "was_sent", "gives another result as bytes"),
        ("x *= by; return x", "operands_stay", "changed its operand 0 at party 0"),
        ("x *= by; return x", "read_only", "does not run"),
        (
            "if not isinstance(x, np.ndarray): raise SystemExit(3)\n    return x * by",
            "no_operand",
            "fails in a wrong way",
        ),
    ],
)
def test_a_kernel_that_breaks_its_promise(caught, body, test, message):
    caught(feop(kernel=body), f"FaultyKernel and {test}", f"Sample('fault.scale') *{message}")


def test_a_result_that_the_author_knows_to_be_wrong(caught):
    source = feop().replace('attrs={"by": 2}),)', 'attrs={"by": 2}, expect=lambda y: y[1] == 3),)')
    caught(source, "FaultyKernel and inferred", "Sample('fault.scale') gives a wrong result")


def test_results_that_are_random_and_do_not_differ(caught):
    source = feop().replace('attrs={"by": 2}),)', 'attrs={"by": 2}, random=True),)')
    caught(source, "random_results", "Sample('fault.scale') gives the same in 41 runs")


@pytest.mark.parametrize(
    ("x", "kernel", "message"),
    [
        ("np.ones(3)", "assert np.isfinite(x).all(); return x * by", "a result for tensors of nan"),
        (
            "np.arange(3)",
            "assert x.min() > -9; return x * by",
            "a result for tensors of -9223372036854775808",
        ),
    ],
)
def test_an_op_that_is_not_total(caught, x, kernel, message):
    source = feop(reads="(), total=True", kernel=kernel).replace("np.arange(3)", x)
    caught(source, "what_is_total", "fails, and fault.scale declares total=True", message)


def test_a_table_that_would_be_a_literal(run):
    source = feop().replace("class TestFault(", "import pyarrow\nclass TestFault(")
    source = source.replace(
        'Sample("fault.op", X)', 'Sample("fault.op", pyarrow.table({"a": [1]}))'
    )
    pytest.importorskip("pyarrow")
    run(source).stdout.fnmatch_lines(["*TypeError: a Table is not a literal: *Of(mp.TableType(*"])
