"""What holds for all data: nothing is lost in text or bytes, and nothing gets past them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as arrays_of
from ir.same_data import key, same
from ir.wire_samples import KINDS
from mplang_cli.text import parse

from mplang_core import BaseType, DType, Mask, MPType, TableType, TensorType
from mplang_core.errors import ParseError, WireError
from mplang_core.ir import (
    AttrVisitor,
    Graph,
    Location,
    Operation,
    Program,
    Value,
    from_bytes,
    normalize,
    print_program,
    to_bytes,
)
from mplang_core.ir.parser import parse_base_type, parse_type

# -- data

text = st.text() | st.text(alphabet='"\\\n\t/%@{}[]<>,=:é€😀\x00\x7f')
names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("nan", "inf")  # tested by name in test_wire_values.py
)
masks = st.builds(Mask, st.integers(0, 2**80 - 1))
tensors = st.builds(TensorType, st.sampled_from(DType), st.lists(st.integers(0, 2**40), max_size=4))
columns = st.lists(st.tuples(text, text), max_size=4, unique_by=lambda column: column[0])
types: st.SearchStrategy[BaseType] = tensors | st.builds(TableType, columns.map(tuple))
held = st.builds(MPType, types, masks | st.none())

element_types = st.sampled_from([d for d in DType if d is not DType.BF16]).map(lambda d: d.numpy)
arrays = arrays_of.arrays(element_types, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=5))
bf16 = st.lists(st.floats(width=16)).map(lambda items: np.array(items, DType.BF16.numpy))

integers = st.integers(-(2**63), 2**64 - 1)
leaves_by_kind: dict[str, st.SearchStrategy[object]] = {
    "none": st.none(),
    "bool": st.booleans(),
    "int": integers,
    "float": st.floats(),
    "str": text,
    "bytes": st.binary(),
    "mask": masks,
    "type": types,
    "array": arrays,
}
leaves = st.one_of(*leaves_by_kind.values())
attrs = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(text, inner, max_size=4)
    ),
    max_leaves=12,
)
attrs_by_kind = {
    **leaves_by_kind,
    "tuple": st.lists(attrs, max_size=4),
    "mapping": st.dictionaries(text, attrs, max_size=4),
}
kind_of = type(  # a visitor that tells the kind: each of its methods gives its own name
    "KindOf",
    (AttrVisitor,),
    {f"visit_{kind}": lambda self, value=None, kind=kind: kind for kind in KINDS},
)().visit


def holding(value: object) -> Program:
    op = Operation("irtest.any", (), (), {"value": normalize(value)})
    return Program("p", Mask(1), Graph([], [op]))


def held_by(program: Program) -> object:
    return program.graph.ops[0].attrs["value"]


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2) -> Graph:
    """A graph in SSA form, of ops that nobody knows."""
    graph = Graph([Value(kind) for kind in draw(st.lists(held, max_size=2))])
    known = list(graph.inputs)
    for _ in range(draw(st.integers(0, 3))):
        uses = st.lists(st.sampled_from(known), max_size=3) if known else st.just([])
        op = Operation(
            f"{draw(names)}.{draw(names)}",
            tuple(draw(uses)),
            tuple(Value(kind) for kind in draw(st.lists(held, max_size=2))),
            {name: normalize(value) for name, value in draw(small_attrs).items()},
            draw(st.dictionaries(names, graphs(depth - 1), max_size=2)) if depth else {},
            draw(locations),
        )
        graph.ops.append(op)
        known.extend(op.outputs)
    if known:
        graph.outputs = draw(st.lists(st.sampled_from(known), max_size=3))
    return graph


small_attrs = st.dictionaries(names, leaves, max_size=3)
files = st.text(min_size=1).filter(lambda file: "/" not in file)
locations = st.none() | st.builds(Location, files, st.integers(0, 10**6))
programs = st.builds(Program, text, masks, graphs())

# -- kinds


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_stays_what_it_is_in_normal_form_text_and_bytes(kind):
    """A kind without a strategy here is a KeyError: add one, and the tests below have it, too."""

    @given(attrs_by_kind[kind])
    def check(data):
        value = normalize(data)
        program = holding(value)
        in_text, in_bytes = parse(print_program(program)), from_bytes(to_bytes(program))
        for again in (normalize(value), held_by(in_text), held_by(in_bytes)):
            assert kind_of(again) == kind
            assert same(again, value)
            assert hash(key(again)) == hash(key(value))

    check()


# -- normal form


@given(attrs)
def test_normal_data_is_normal(value):
    once = normalize(value)
    assert same(normalize(once), once)
    assert same(once, normalize(value))


@given(attrs, attrs)
def test_same_is_symmetric_and_goes_with_the_digest(a, b):
    x, y = normalize(a), normalize(b)
    assert same(x, y) == same(y, x)
    assert same(x, y) == (holding(x).digest == holding(y).digest)


# -- nothing is lost


@given(attrs)
def test_an_attribute_comes_back_from_text(value):
    program = holding(value)
    shown = print_program(program)
    assert same(held_by(parse(shown)), held_by(program))
    assert print_program(parse(shown)) == shown


@given(attrs)
def test_an_attribute_comes_back_from_bytes(value):
    program = holding(value)
    data = to_bytes(program)
    assert same(held_by(from_bytes(data)), held_by(program))
    assert to_bytes(from_bytes(data)) == data


@given(attrs)
def test_text_and_bytes_keep_the_digest_of_an_attribute(value):
    program = holding(value)
    assert from_bytes(to_bytes(program)).digest == program.digest
    assert parse(print_program(program)).digest == program.digest


@given(bf16)
def test_bfloat16_comes_back(array):
    program = holding(array)
    assert held_by(program).tobytes() == array.tobytes()
    for again in (parse(print_program(program)), from_bytes(to_bytes(program))):
        assert same(held_by(again), held_by(program))


@given(types)
def test_a_base_type_comes_back_from_its_text(kind):
    assert parse_base_type(str(kind)) == kind
    assert parse_type(str(kind)) == kind
    assert type(kind).from_params(kind.params()) == kind
    assert held_by(from_bytes(to_bytes(holding(kind)))) == kind


@given(held)
def test_a_multi_party_type_comes_back_from_its_text(kind):
    assert parse_type(str(kind)) == kind


@given(programs)
def test_a_program_comes_back_from_text_and_from_bytes(program):
    shown, data = print_program(program), to_bytes(program)
    for again in (parse(shown), from_bytes(data)):
        assert print_program(again) == shown
        assert to_bytes(again) == data
        assert (again.name, again.mask) == (program.name, program.mask)
        assert again.digest == program.digest


@given(programs)
def test_without_locations_the_rest_of_a_program_comes_back(program):
    shown = print_program(program, locations=False)
    again = from_bytes(to_bytes(program, locations=False))
    assert print_program(again) == shown == print_program(parse(shown))
    assert all(op.location is None for op in again.graph.walk())
    assert again.digest == program.digest


# -- nothing gets past

GOLDEN = sorted(Path(__file__).parent.glob("golden/valid/*.mpl"))
TOKENS = [re.findall(r'"(?:[^"\\]|\\.)*"|[\w.]+|\s+|.', path.read_text()) for path in GOLDEN]
words = st.sampled_from(sorted({token for tokens in TOKENS for token in tokens}))
odd = st.sampled_from(
    ["tensor", "dense", "dict", "buffers", "none", "nan", "-inf", "1e999", "9" * 30, "9" * 5000]
    + ['"f32"', '"(,"', '"f4,("', '"\\ud800"', "<", ">", "@?", "%0", "-1", "0.5", "@" + "0" * 16]
)


def refused_or_read(source: str) -> None:
    """Text is refused by a ParseError, or gives a program that can be passed on."""
    try:
        program = parse(source)
    except ParseError as error:
        assert re.match(r"line \d+, column \d+: ", str(error))
        return
    assert print_program(parse(print_program(program))) == print_program(program)
    assert from_bytes(to_bytes(program)).digest == program.digest


@given(st.text() | st.lists(words | odd).map(" ".join) | st.lists(words | odd).map("".join))
@example("")
@example('program "p" on {0} () { return } buffers')
@example('program "p" on {0} () { return ) }')
@example('program "p" on {0} (%0: tensor<>) { return }')
@example('program "p" on {0} (%0: tensor<"(,">) { return }')
@example('program "p" on {0} (%0: tensor<dense<f32[1]>[0.5]>) { return }')
@example('program "p" on {0} () { x.y() {a = dense<tensor<>>[]} return }')
@example('program "p" on {0} () { x.y() {a = "\\ud800"} return }')
@example('program "p" on {0} () { x.y() {a = 99999999999999999999} return }')
@example('program "p" on {0} () { x.y() {a = -nan} return }')
@example('program "p" on {0} () { x.y() at "m.py:99999999999999999999" return }')
@example('program "p" on {0} () { x.y() {a = dense<f32[0]>@0000000000000000} return }')
def test_arbitrary_text_is_refused_by_a_parse_error(source):
    refused_or_read(source)


@given(st.sampled_from(TOKENS), st.lists(st.tuples(st.floats(0, 1), words | odd | st.just(""))))
def test_a_program_with_words_exchanged_is_refused_by_a_parse_error_or_read(tokens, changes):
    tokens = list(tokens)
    for where, word in changes:
        tokens[int(where * (len(tokens) - 1))] = word
    refused_or_read("".join(tokens))


@given(st.text() | st.lists(words | odd).map("".join))
@example("tensor<>")
@example('tensor<"(,">')
@example('tensor<"f32", 9999999999999999999999>')
def test_an_arbitrary_type_is_refused_by_a_parse_error_or_printed_again(source):
    try:
        kind = parse_type(source)
    except ParseError:
        return
    assert parse_type(str(kind)) == kind


@given(st.binary() | st.binary().map(lambda more: b"\x97\xa6mplang\x01\xa1p\xc4\x01\x03" + more))
@example(b"")
@example(b"\x97\xa6mplang\x01\xa1p\xc4\x01\x03\xdd\xff\xff\xff\xff")
def test_arbitrary_bytes_are_refused_by_a_wire_error(data):
    try:
        program = from_bytes(data)
    except WireError:
        return
    assert from_bytes(to_bytes(program)).digest == program.digest


@pytest.mark.parametrize("parse", [parse_type, parse_base_type])
@pytest.mark.parametrize("text", [None, 7, b"f32[3]", ["f32"] * 3])
def test_what_is_no_text_is_no_type(parse, text):
    with pytest.raises(ParseError, match="expected text, got"):
        parse(text)
