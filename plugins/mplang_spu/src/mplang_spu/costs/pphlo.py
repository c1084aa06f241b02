"""Reader of PPHLO, the code that libspu's compiler writes. Imports libspu for its version."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mplang_spu.libspu import version

_OP = re.compile(r'(?:(%\w+)(?::(\d+))? = )?"?(?:pphlo\.)?(\w+)')
VALUE = re.compile(r"%\w+(?:#\d+)?")
TENSOR = re.compile(r"tensor<((?:\d+x)*)(!pphlo\.secret<)?(\w+)>?>")
_SECRET = "!pphlo.secret<"


@dataclass(frozen=True, slots=True)
class Tensor:
    """Type of a value.

    Attributes:
        shape: its dimensions.
        element: the element type: ``f32``, ``i1``, ….
        secret: whether it is a share.
    """

    shape: tuple[int, ...]
    element: str
    secret: bool

    @property
    def size(self) -> int:
        """Number of its elements."""
        return math.prod(self.shape)

    def of_shape(self, *shape: int) -> Tensor:
        """Return the type with another shape."""
        return Tensor(shape, self.element, self.secret)

    def __str__(self) -> str:
        dims = "".join(f"{dim}x" for dim in self.shape)
        return f"tensor<{dims}{f'{_SECRET}{self.element}>' if self.secret else self.element}>"


@dataclass(frozen=True, slots=True)
class PphloRegion:
    """PphloRegion of an op.

    Attributes:
        ops: its ops, the last of which returns.
    """

    ops: list[PphloOp] = field(default_factory=list)

    @property
    def returns(self) -> Sequence[str]:
        """Names of the values that it returns."""
        return self.ops[-1].operands


@dataclass(frozen=True, slots=True)
class PphloOp:
    """Op of PPHLO.

    Attributes:
        name: without the dialect.
        text: its lines.
        results: the names of its results: ``%3``, or ``%3#0``, ``%3#1``.
        operands: the names of its operands, those used in its regions not among them.
        gives: the types of its results.
        regions: its regions.
        arguments: of a loop: the names by which the regions know the operands.
    """

    name: str
    text: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    gives: tuple[Tensor, ...]
    regions: tuple[PphloRegion, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def defines(self) -> str:
        """The name of all its results together, as its own text has it."""
        return self.results[0].partition("#")[0] if self.results else ""


@dataclass(frozen=True, slots=True)
class PphloFunction:
    """Function ``main`` of a module.

    Attributes:
        names: of its operands.
        takes: their types.
        body: its ops.
    """

    names: tuple[str, ...]
    takes: tuple[Tensor, ...]
    body: PphloRegion


def read_pphlo(code: str) -> PphloFunction:
    """Read a module of libspu's compiler.

    Args:
        code: the text, as the compiler prints it.

    Example:
        >>> made = read_pphlo('''module @main attributes {pphlo.version = "1"} {
        ...   func.func @main(%arg0: tensor<2x!pphlo.secret<f32>>) -> tensor<2x!pphlo.secret<f32>> {
        ...     %0 = pphlo.negate %arg0 : tensor<2x!pphlo.secret<f32>>
        ...     return %0 : tensor<2x!pphlo.secret<f32>>
        ...   }
        ... }''')
        >>> made.body.ops[0].name, made.body.ops[0].gives[0].shape, made.body.returns
        ('negate', (2,), ('%0',))
    """
    lines = [line.strip() for line in code.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("func.func"))
    head = lines[start].partition(" -> ")[0]
    names = tuple(re.findall(r"(%\w+): ", head))
    body, _ = _region(lines, start + 1)
    return PphloFunction(names, tuple(tensors(head)), body)


def tensors(text: str) -> Iterator[Tensor]:
    """Yield the types in a text."""
    for dims, secret, element in TENSOR.findall(text):
        yield Tensor(tuple(map(int, dims.split("x")[:-1])), element, bool(secret))


def free_values(op: PphloOp) -> tuple[str, ...]:
    """Return the names that an op uses in its regions and does not define there."""
    text = "\n".join(op.text.splitlines()[1:])
    defined = set(re.findall(r"(%\w+)(?::\d+)? = ", text)) | set(re.findall(r"(%\w+): ", text))
    used = {each.partition("#")[0]: each for each in VALUE.findall(text)}
    own = {each.partition("#")[0] for each in op.operands} | {op.defines}
    return tuple(each for name, each in used.items() if name not in defined | own)


def _region(lines: Sequence[str], at: int) -> tuple[PphloRegion, int]:
    """Read the ops of a region; return it, and the index of the line that ends it."""
    made = PphloRegion()
    while not lines[at].startswith("}"):
        if lines[at] and not lines[at].startswith("^"):
            op, at = _op(lines, at)
            made.ops.append(op)
        at += 1
    return made, at


def _op(lines: Sequence[str], at: int) -> tuple[PphloOp, int]:
    """Read an op; return it, and the index of its last line."""
    first, head, regions = at, lines[at], list[PphloRegion]()
    generic = head.endswith("({")  # its types come last
    if not generic and lines[at + 1].startswith(("cond", "reducer", "comparator")):
        at += 1
    while lines[at].endswith("{"):
        region, at = _region(lines, at + 1)
        regions.append(region)
    match = _OP.match(head)
    assert match is not None
    said, _, types = (lines[at] if generic else head).rpartition(" : ")
    named = VALUE.findall(head.partition(" = ")[2] if match[1] else head)
    if not generic:
        named = VALUE.findall(said.partition(" = ")[2] if match[1] else said)
    arguments = re.findall(r"(%\w+) = ", said.partition(" = ")[2])
    results = _results(match[1], match[2])
    gives = list(tensors(types.rpartition(" -> ")[2]))
    made = PphloOp(
        name=match[3],
        text="\n".join(lines[first : at + 1]),
        results=results,
        operands=tuple(each for each in named if each not in arguments),
        gives=tuple(gives[:1] * len(results) if len(gives) == 1 else gives[: len(results)]),
        regions=tuple(regions),
        arguments=tuple(arguments),
    )
    return made, at


def _results(name: str | None, count: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    return (name,) if count is None else tuple(f"{name}#{i}" for i in range(int(count)))


def module_of(heads: Sequence[str], body: Sequence[str], results: Mapping[str, Tensor]) -> str:
    """Return a module that libspu runs.

    Args:
        heads: its operands, with their types.
        body: the lines of its ops.
        results: the values that it returns, with their types.
    """
    kinds = ", ".join(map(str, results.values()))
    lines = "\n".join([*body, f"return {', '.join(results)} : {kinds}"])
    return (
        f'module @main attributes {{pphlo.version = "{version}"}} {{\n'
        f"func.func @main({', '.join(heads)}) -> ({kinds}) {{\n{lines}\n}}\n}}\n"
    )
