"""Writer of one module that calls others. Imports no JAX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mplang_core import TensorType
from mplang_core.ext import MAX_CODE, pack
from mplang_stablehlo.text import read, signature_of, text_of_type

_DEFINED = re.compile(r"^  func\.func (?:public|private) @([\w.$-]+)\(", re.MULTILINE)
_SYMBOL = re.compile(r'@?"[^"]*"|@([\w.$-]+)')


class Name(NamedTuple):
    """SSA value of the text: its name and its type."""

    text: str
    type: str


class ModuleWriter:
    """Writer of a module whose ``main`` calls other modules, in loops and branches as well.

    Each module becomes a function, once. What is written is admitted by engines as any other code.

    Args:
        takes: the types of the operands of ``main``.
        largest: the maximum size of a module in bytes.

    Attributes:
        operands: the operands of ``main``.

    Example:
        >>> from mplang_core.ext import unpack
        >>> double = pack('''module @main {
        ...   func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
        ...     %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
        ...     return %0 : tensor<f32>
        ...   }
        ... }
        ... ''')
        >>> writer = ModuleWriter([TensorType("f32")])
        >>> once = writer.call(double, writer.operands)
        >>> print(unpack(writer.code(writer.call(double, once)), MAX_CODE))
        module @main {
          func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
            %v0 = func.call @f0.main(%arg0) : (tensor<f32>) -> tensor<f32>
            %v1 = func.call @f0.main(%v0) : (tensor<f32>) -> tensor<f32>
            return %v1 : tensor<f32>
          }
          func.func private @f0.main(%arg0: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
            return %0 : tensor<f32>
          }
        }
        <BLANKLINE>
    """

    def __init__(self, takes: Sequence[TensorType], largest: int = MAX_CODE) -> None:
        self.operands = [Name(f"%arg{i}", text_of_type(kind)) for i, kind in enumerate(takes)]
        self._largest = largest
        self._functions: dict[bytes, str] = {}  # the names by code
        self._bodies: list[str] = []
        self._lines: list[str] = []
        self._names = 0
        self._indent = "    "

    def call(self, code: bytes, operands: Sequence[Name]) -> list[Name]:
        """Write a call of another module.

        Args:
            code: the compressed text of the module.
            operands: its operands.

        Returns:
            Its results.
        """
        results = [text_of_type(kind) for kind in signature_of(code)[1]]
        types = f"({_listed(x.type for x in operands)}) -> {_results(results)}"
        call = f"func.call @{self._function(code)}({_listed(x.text for x in operands)}) : {types}"
        return self._define(call, results)

    def loop(
        self,
        state: Sequence[Name],
        condition: Callable[[Sequence[Name]], Name],
        body: Callable[[Sequence[Name]], Sequence[Name]],
    ) -> list[Name]:
        """Write a loop.

        Args:
            state: the initial state.
            condition: writes the condition for a state, and returns it.
            body: writes the body for a state, and returns the next one.

        Returns:
            The state after the loop.
        """
        types = [each.type for each in state]
        args = [Name(self._name(), kind) for kind in types]
        given = _listed(f"{a.text} = {x.text}" for a, x in zip(args, state, strict=True))
        outs = self._define(f"stablehlo.while({given}) : {_listed(types)}", types)
        self._region("cond {", lambda: [condition(args)])
        self._region("} do {", lambda: body(args))
        self._write("}")
        return outs

    def branch(
        self,
        predicate: Name,
        types: Sequence[str],
        then: Callable[[], Sequence[Name]],
        otherwise: Callable[[], Sequence[Name]],
    ) -> list[Name]:
        """Write a branch.

        Args:
            predicate: the bool that selects.
            types: those of the results.
            then: writes what is done if it is true, and returns the results.
            otherwise: the same if it is false.

        Returns:
            The results.
        """
        outs = self._define(f'"stablehlo.if"({predicate.text}) ({{', types)
        self._region(None, then)
        self._region("}, {", otherwise)
        self._write(f"}}) : (tensor<i1>) -> {_results(types)}")
        return outs

    def code(self, results: Sequence[Name]) -> bytes:
        """Return the compressed text of the module.

        Args:
            results: the results of ``main``.
        """
        takes = _listed(f"{each.text}: {each.type}" for each in self.operands)
        types = [each.type for each in results]
        gives = f" -> {_results(types)}" if types else ""
        end = f" {_listed(x.text for x in results)} : {_listed(types)}" if types else ""
        return pack(
            f"module @main {{\n  func.func public @main({takes}){gives} {{\n"
            + "".join(self._lines)
            + f"    return{end}\n  }}\n{''.join(self._bodies)}}}\n"
        )

    def _region(self, opening: str | None, write: Callable[[], Sequence[Name]]) -> None:
        if opening is not None:
            self._write(opening)
        outer, self._indent = self._indent, self._indent + "  "
        results = write()
        types = _listed(each.type for each in results)
        self._write(f"stablehlo.return {_listed(x.text for x in results)} : {types}")
        self._indent = outer

    def _define(self, op: str, types: Sequence[str]) -> list[Name]:
        if not types:
            self._write(op)
            return []
        name = self._name()
        if len(types) == 1:
            self._write(f"{name} = {op}")
            return [Name(name, types[0])]
        self._write(f"{name}:{len(types)} = {op}")
        return [Name(f"{name}#{i}", kind) for i, kind in enumerate(types)]

    def _write(self, line: str) -> None:
        self._lines.append(f"{self._indent}{line}\n")

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names - 1}"

    def _function(self, code: bytes) -> str:
        """Return the name of a module's ``main``, and add its functions at the first call."""
        name = self._functions.get(code)
        if name is None:
            prefix = f"f{len(self._functions)}"
            name = self._functions[code] = f"{prefix}.main"
            self._bodies.append(_renamed(read(code, self._largest), prefix))
        return name


def _renamed(text: str, prefix: str) -> str:
    """Return the functions of a module, all private, with a prefix to their names.

    The text may be no module at all; then what it gives is refused as part of another one.
    """
    names = set(_DEFINED.findall(text))

    def rename(found: re.Match[str]) -> str:
        symbol = found.group(1)
        return f"@{prefix}.{symbol}" if symbol in names else found.group()

    body = text.partition("\n")[2].rstrip().removesuffix("}")
    body = _SYMBOL.sub(rename, body)
    return body.replace("  func.func public @", "  func.func private @", 1)


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _results(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({_listed(types)})"
