"""One use of a feop, with or without data: what the suites for feops and kernels run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mplang_core import (
    BaseType,
    ClusterSpec,
    FeBuilder,
    FeProgram,
    FeSignature,
    Mask,
    MPType,
    Program,
    TensorType,
    TraceContext,
    constant,
    peval,
    registry,
    with_ctx,
)
from mplang_core.ext import (
    Codec,
    Graph,
    Operand,
    Operation,
    Value,
    codecs,
    flatten,
    meta_of,
    normalize,
    print_program,
    unflatten,
    unpack,
)


class Of:
    """A value of a plugin's type.

    Args:
        kind: its type.
        *data: the value; or one per party, where they hold different ones.
    """

    def __init__(self, kind: BaseType, *data: Any) -> None:
        self.kind = kind
        self.data = data

    def at(self, rank: int) -> Any:
        """Return a party's value."""
        return self.data[rank if len(self.data) > 1 else 0]


@dataclass(frozen=True, eq=False)
class Sample:
    """Use of a feop.

    An argument is an array, a value :class:`Of` another type (a table, too), a type (a value
    without data, for :class:`FeopSuite` alone), a nest of these, or a literal. The first argument
    of a compiler is the Python function.

    Args:
        op: the feop's name.
        *args: what it is given by position.
        attrs: what it is given by keyword.
        config: its configuration, for a feop that takes one.
        parties: how many run it together.
        random: whether its results differ from run to run, so that they are not compared.
        expect: ``expect(*results)`` tells whether the results of one run are right; a result
            is a party's value, or a tuple of one per party where several run it.
        name: tells it from other samples of the feop.

    Example:
        >>> import numpy as np
        >>> import mplang_testing.dialect
        >>> sample = Sample("kit.add", np.int64([1, 2]), np.int64([3, 4]))
        >>> [str(kind) for kind in sample.operands]
        ['i64[2]', 'i64[2]']
    """

    op: str
    args: tuple[Any, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    config: Any = None
    parties: int = 1
    random: bool = False
    expect: Callable[..., Any] | None = None
    name: str = ""

    def __init__(self, op: str, *args: Any, **fields: Any) -> None:
        for leaf in flatten(tuple(args))[0]:
            if hasattr(leaf, "__arrow_c_stream__"):
                raise TypeError(
                    f"a {type(leaf).__name__} is not a literal: a table is an operand, "
                    'Of(mp.TableType((("age", "int64"), …)), table)'
                )
        unknown = fields.keys() - self.__dataclass_fields__.keys() | fields.keys() & {"op", "args"}
        if unknown:
            raise TypeError(
                f"a Sample takes {', '.join(list(self.__dataclass_fields__)[2:])}; got "
                f"{', '.join(sorted(unknown))}. Keywords of the feop stand in attrs={{…}}"
            )
        for key, value in {"attrs": {}, **fields, "op": op, "args": args}.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        return f"Sample({self.name or self.op!r})"

    @property
    def mask(self) -> Mask:
        """Who runs it."""
        return Mask.all(self.parties)

    @property
    def is_compiler(self) -> bool:
        """Whether its first argument is a Python function."""
        return meta_of(registry.get(self.op)).op_kind == "compiler"

    @property
    def operands(self) -> list[BaseType]:
        """The types of the values among the arguments."""
        return [kind for kind in map(_kind, flatten(self.args)[0]) if kind is not None]

    @property
    def has_data(self) -> bool:
        """Whether all values are there, so that it can run."""
        return not any(isinstance(leaf, BaseType) for leaf in flatten(self.args)[0])

    def data(self, rank: int) -> list[Any]:
        """Return a party's operands; arrays are its own, and can be written."""
        return [
            leaf.at(rank) if isinstance(leaf, Of) else np.array(leaf)
            for leaf in flatten(self.args)[0]
            if _kind(leaf) is not None
        ]

    def build(self, operands: Sequence[Any] | None = None) -> FeProgram:
        """Call the feop.

        Args:
            operands: what takes the place of the values; stand-ins by default.
        """
        op: Any = registry.get(self.op)
        options = {} if self.config is None else {"config": self.config}
        if self.is_compiler:
            fn, *rest = self.args
            signature = FeSignature(self._filled(rest, self.operands), self.attrs)
            made = op(fn, signature, **options)
        else:
            args = self.stand_ins() if operands is None else self.filled(operands)
            made = op(*args, **self.attrs, **options)
            made = made(*args) if isinstance(made, FeBuilder) else made
        if not isinstance(made, FeProgram):
            raise TypeError(f"{self.op} gives a FeProgram, got a {type(made).__name__}")
        return made

    def stand_ins(self) -> tuple[Any, ...]:
        """Return the arguments, with something that has a type alone for each value."""
        return self.filled([Operand(kind) for kind in self.operands])

    def filled(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments, with an operand in place of each value."""
        return self._filled(self.args, operands)

    def _filled(self, args: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
        leaves, spec = flatten(tuple(args))
        values = iter(operands)
        return tuple(
            unflatten(spec, [leaf if _kind(leaf) is None else next(values) for leaf in leaves])
        )

    def trace(self, ctx: TraceContext | None = None) -> Program:
        """Return a program of several parties that runs it, and takes its operands."""
        ctx = ctx or TraceContext(ClusterSpec.simple(self.parties))
        operands = [ctx.parameter(MPType(kind, self.mask)) for kind in self.operands]
        with with_ctx(ctx):
            made = self.build(operands)
            given = list(made.inputs or operands)
            consts = [constant(array) for array in made.consts]
            outs: Any = peval(made.pfunc, [*given, *consts], self.mask)
        ctx.graph.outputs = [out.value for out in outs]
        return Program(self.op, self.mask, ctx.graph)


def _kind(leaf: Any) -> BaseType | None:
    if isinstance(leaf, Of):
        return leaf.kind
    if isinstance(leaf, np.ndarray | np.generic):
        return TensorType.of(leaf)
    return leaf if isinstance(leaf, BaseType) else None


def codec_of(kind: BaseType) -> Codec | None:
    """Return the codec of a type, or the one by which its party stores its values."""
    return codecs.get(kind.name) or getattr(kind, "storage_codec", None)


def local_program(made: FeProgram) -> tuple[Operation, Program]:
    """Return the op of a feop's program, and a program of one party around it."""
    inputs = tuple(Value(kind) for kind in made.pfunc.ins_info)
    outputs = tuple(Value(kind) for kind in made.pfunc.outs_info)
    attrs = {name: normalize(value) for name, value in made.pfunc.attrs.items()}
    op = Operation(made.pfunc.fn_type, inputs, outputs, attrs)
    return op, Program("sample", Mask(1), Graph(list(inputs), [op], list(outputs)))


def text_of(made: FeProgram) -> str:
    """Return all that a feop's program is, as lines; the last one is a digest of its bytes."""
    pfunc = made.pfunc
    lines = [
        f"{pfunc.fn_type}: {_list(pfunc.ins_info)} -> {_list(pfunc.outs_info)}",
        f"nests: {made.in_tree} -> {made.out_tree}",
        f"meta: {normalize(dict(made.meta))!s}",
        *(f"closed over: {TensorType.of(x)} {_hash(x.tobytes())}" for x in made.consts),
        *_lines("", normalize(pfunc.attrs)),
    ]
    _, program = local_program(made)
    return "\n".join([*lines, f"digest: {_hash(print_program(program).encode())}"])


def _lines(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [line for key in value for line in _lines(f"{name}.{key}", value[key])]
    if isinstance(value, bytes):
        try:
            return [f"{name} | {line}" for line in unpack(value).split("\n")]
        except ValueError:
            return [f"{name} = {value.hex()}"]
    return [f"{name} = {value!r}"]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _list(kinds: Sequence[BaseType]) -> str:
    return f"({', '.join(map(str, kinds))})"
