"""Parameters and results of a program, as plain data readable without plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_analysis.ext import in_quotes, quoted

from mplang_cli.artifact.data import Data
from mplang_cli.artifact.tree import Tree
from mplang_core import MPLangError, MPType, TracedFunction
from mplang_core.ext import TraceError, at, parse_type


class Input(Data, frozen=True):
    """A leaf of the arguments.

    Attributes:
        type: of the value that is given, ``f32[3]@{0}``; empty where it was compiled in.
        literal: what was compiled in; the same must be given.
    """

    type: str
    literal: str | None = None

    def __str__(self) -> str:
        return quoted_type(self.type) if self.type else in_quotes(self.literal or "", None)


class Output(Data, frozen=True):
    """A leaf of the results.

    Attributes:
        type: as ``f32[3]@{0}``.
        device: the name of the device that it is on.
        uniform: whether all holders are known to have the same.
    """

    type: str
    device: str | None
    uniform: bool

    def __str__(self) -> str:
        kind = quoted_type(self.type)
        return f"{kind} on {quoted(self.device)}" if self.device is not None else kind


class Signature(Data, frozen=True):
    """Parameters and results of a program.

    Attributes:
        parameters: the names of the arguments by position.
        arguments: how ``(args, kwargs)`` are nested.
        inputs: their leaves.
        result: how the result is nested.
        outputs: its leaves.
    """

    parameters: tuple[str, ...]
    arguments: Tree
    inputs: tuple[Input, ...]
    result: Tree
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, traced: TracedFunction, parameters: Sequence[str] = ()) -> Signature:
        """Return the signature of a traced function.

        Args:
            traced: the function.
            parameters: the names of its arguments by position; numbers where they are missing.

        Raises:
            TraceError: it has arguments or results that an artifact does not hold.
        """
        arguments = Tree.of(traced.in_struct)
        count = len(arguments.children[0].children)
        names = [*parameters[:count], *map(str, range(len(parameters), count))]
        outs = zip(traced.out_vars, traced.out_devices, traced.out_uniform, strict=True)
        return cls(
            tuple(names),
            arguments,
            tuple(_input(leaf, traced.name) for leaf in traced.in_leaves),
            Tree.of(traced.out_struct),
            tuple(Output(str(v.type), d.name if d else None, uniform) for v, d, uniform in outs),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """A name per leaf of the arguments: ``x``, ``model.w``, ``batch.0``."""
        return tuple(
            _dotted((path[1], *path[2:]) if path[0] else (self.parameters[path[1]], *path[2:]))  # type: ignore[index]
            for path in self.arguments.paths()
        )

    @property
    def results(self) -> tuple[str, ...]:
        """A name per leaf of the results: ``result``, ``result.0``, ``result.loss``."""
        return tuple(_dotted(("result", *path)) for path in self.result.paths())

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The names of the arguments and what each is, no text of the program's unquoted."""
        return [(_shown(n), str(leaf)) for n, leaf in zip(self.names, self.inputs, strict=True)]

    @property
    def shown_results(self) -> list[tuple[str, str]]:
        """The same of the results."""
        return [(_shown(n), str(leaf)) for n, leaf in zip(self.results, self.outputs, strict=True)]

    def bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put what is given by keyword where it was given by position."""
        placed, rest = list(args), dict(kwargs)
        for name in self.parameters[len(args) :]:
            if name not in rest:
                break
            placed.append(rest.pop(name))
        return tuple(placed), rest

    def check(self) -> None:
        """Check its consistency.

        Raises:
            ValueError: they do not fit.
        """
        sides = ((self.arguments, self.inputs), (self.result, self.outputs))
        for tree, leaves in sides:
            if tree.check() != len(leaves):
                raise ValueError(f"{len(leaves)} leaves, nested as {tree}")
        pair = self.arguments.children
        if [self.arguments.kind, *(part.kind for part in pair)] != ["tuple", "tuple", "dict"]:
            raise ValueError(f"arguments that are not (args, kwargs): {self.arguments}")
        if len(self.parameters) != len(pair[0].children):
            raise ValueError(f"{len(pair[0].children)} arguments, {len(self.parameters)} names")
        if not all(isinstance(key, str) for key in pair[1].keys):
            raise ValueError(f"keywords that are not names: {pair[1].keys}")
        for name in self.parameters:
            if not all(part.isidentifier() or part.isdecimal() for part in name.split(".")):
                raise ValueError(f"the parameter {quoted(name)} is not a name of Python's")
        if len(set(self.names)) != len(self.names):
            raise ValueError("two arguments have one name")
        if any(bool(leaf.type) == (leaf.literal is not None) for leaf in self.inputs):
            raise ValueError("an input has either a type or a literal")

    def lines(self) -> list[str]:
        """Return it as text, a line per leaf."""
        takes = [f"{name}: {leaf}" for name, leaf in self.shown]
        gives = [f"{name}: {leaf}" for name, leaf in self.shown_results]
        nested = [f"arguments {self.arguments}", f"result {self.result}"]
        return [*takes, *gives, *nested]

    def __str__(self) -> str:
        takes = (f"{name}: {leaf}" for name, leaf in self.shown)
        return f"({', '.join(takes)}) -> {', '.join(map(str, self.outputs)) or 'nothing'}"


def _input(leaf: Any, name: str) -> Input:
    if isinstance(leaf, MPType):
        return Input(str(leaf))
    if isinstance(leaf, str):
        return Input("", leaf)
    raise TraceError(
        f"{at()}{name} was compiled with the argument {leaf!r}, and an artifact holds no "
        f"{type(leaf).__name__}; have the function close over it, or take a value or a text",
        code="T016",
    )


def quoted_type(text: str) -> str:
    """Return a type as it is shown; what is none, or is of a plugin that is not here, in quotes.

    Example:
        >>> print(quoted_type("i64[]@{0}"), quoted_type("approved by all"))
        i64[]@{0} "approved by all"
    """
    try:
        return str(parse_type(text))
    except MPLangError:
        return quoted(text, None)


def _shown(name: str) -> str:
    return quoted(name, None)


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path))
