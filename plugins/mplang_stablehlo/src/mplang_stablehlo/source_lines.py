"""Source lines of the code that this process traced. Imports JAX.

Code is the same bytes on every machine, so it has no source lines. The process that traced it keeps
the portable artifact that it was made from, with JAX's tracebacks. They are parsed on demand.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jaxlib import _jax
from jaxlib.mlir import ir

from mplang_core.ext import Location, caller, is_skipped
from mplang_stablehlo.module import parse, walk

MAX_CODES = 256
MAX_CALL_SITES = 4  # per code, if traced at several lines
MAX_SIZE = 1 << 20  # bytes of an artifact; larger ones hold data

_TRANSPARENT = ("closed_call", "checkpoint")
"""Functions that JAX makes of loop bodies; their ops belong to the caller."""

Lines: TypeAlias = Sequence[Location | None]


@dataclass(frozen=True, slots=True)
class _Traced:
    """One tracing: the artifact, the file that called the user's function, and the call site."""

    artifact: bytes
    tracer: str
    call_site: Location | None


_known: OrderedDict[bytes, list[_Traced]] = OrderedDict()  # by digest of the code
_lock = threading.Lock()


def record_lines(code: bytes, artifact: bytes, tracer: str) -> None:
    """Store the source lines of a code in this process.

    Args:
        code: the compressed text.
        artifact: the portable artifact with JAX's locations.
        tracer: the file that calls the user's function; outer frames are ignored.
    """
    if len(artifact) > MAX_SIZE:
        return
    key, made = hashlib.sha256(code).digest(), _Traced(artifact, tracer, caller())
    with _lock:
        others = [each for each in _known.pop(key, []) if each.call_site != made.call_site]
        _known[key] = [*others, made][-MAX_CALL_SITES:]
        if len(_known) > MAX_CODES:
            _known.popitem(last=False)


def lines_of(code: bytes, call_site: Location | None = None) -> Lines | None:
    """Return the user's line of each op of a code, in the order of a walk over its module.

    Args:
        code: the compressed text.
        call_site: where it was traced, if at several lines.

    Returns:
        A line per op; an op without one has the line of the call around it. ``None`` if this
        process did not trace the code.
    """
    with _lock:
        found = list(_known.get(hashlib.sha256(code).digest(), ()))
    if not found:
        return None
    traced = next((each for each in found if each.call_site == call_site), found[-1])
    module = parse(_jax.mlir.deserialize_portable_artifact(traced.artifact))
    return _Reader(module, traced.tracer).lines()


def line_at(
    module: ir.Module, code: bytes, index: int, call_site: Location | None = None
) -> Location | None:
    """Return the user's line of one op; in a function of a library, that of the call of it.

    Args:
        module: the code, parsed.
        code: as :func:`record_lines` knows it.
        index: of the op, in the order of ``walk``.
        call_site: where it was traced, if at several lines.
    """
    ops, lines = list(walk(module.operation)), lines_of(code, call_site)
    if lines is None or len(lines) != len(ops):
        return None
    for _ in range(len(ops)):  # as deep as calls can be
        if not 0 <= index < len(ops) or lines[index] is not None:
            break
        name = _function(ops[index])
        calls = (i for i, op in enumerate(ops) if _callee(op) == name)
        index = next(calls, -1)
    return lines[index] if 0 <= index < len(ops) else None


def _callee(op: ir.Operation) -> str | None:
    if op.name != "func.call":
        return None
    name: str = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    return name


def annotate(module: ir.Module, lines: Lines | None) -> None:
    """Write lines into a parsed module as the locations of its ops.

    Args:
        module: changed in place.
        lines: a line per op in the order of ``walk``; unknown if ``None`` or of another length.
    """
    ops = list(walk(module.operation))
    known = lines if lines is not None and len(lines) == len(ops) else [None] * len(ops)
    with module.context:
        for op, line in zip(ops, known, strict=True):
            if line is None:
                op.location = ir.Location.unknown()
            else:
                op.location = ir.Location.file(line.file, line.line, 0)


def line_of(op: ir.Operation) -> Location | None:
    """Return the line of an op that :func:`annotate` wrote."""
    found = op.location
    return Location(found.filename, found.start_line) if found.is_a_file() else None


@dataclass(frozen=True, slots=True)
class _Frame:
    function: str
    line: Location


class _Reader:
    """Reader of the user's lines in JAX's locations."""

    def __init__(self, module: ir.Module, tracer: str) -> None:
        self._tracer = os.path.realpath(tracer)
        self._module, self._roots = module, _roots()
        self._real: dict[str, str] = {}
        self._owners = {
            callee: _function(op)
            for op in walk(module.operation)
            if (callee := _callee(op)) is not None
        }

    def lines(self) -> list[Location | None]:
        """Return a line per op; functions have none."""
        return [self._line(op, _function(op)) for op in walk(self._module.operation)]

    def _line(self, op: ir.Operation, function: str) -> Location | None:
        frames = list(self._inside(op.location))
        while function.startswith(_TRANSPARENT) and function in self._owners:
            function = self._owners[function]
        if function != "main" and not any(_is_named(function, frame) for frame in frames):
            return None  # a library function, traced at its first caller
        own = [frame.line for frame in frames if not self._is_framework(frame.line.file)]
        if function == "main":  # else the outer frames are those of the first caller
            own.sort(key=lambda line: _is_installed(line.file))
        return own[0] if own else None

    def _inside(self, location: ir.Location) -> Iterator[_Frame]:
        """Yield the frames within the user's function, innermost first."""
        for frame in _frames(location):
            if self._real_path(frame.line.file) == self._tracer:
                return
            yield frame

    def _is_framework(self, file: str) -> bool:
        """Return whether a file belongs to the framework, a plugin, or a library below it."""
        return self._real_path(file).startswith(self._roots)

    def _real_path(self, file: str) -> str:
        if file not in self._real:
            self._real[file] = os.path.realpath(file)
        return self._real[file]


def _frames(location: ir.Location) -> Iterator[_Frame]:
    if location.is_a_callsite():
        yield from _frames(location.callee)
        yield from _frames(location.caller)
    elif location.is_a_name() and location.child_loc.is_a_file():
        yield _Frame(location.name_str, _location(location.child_loc))
    elif location.is_a_name():
        yield from _frames(location.child_loc)
    elif location.is_a_file():
        yield _Frame("", _location(location))


def _location(location: ir.Location) -> Location:
    return Location(sys.intern(location.filename), location.start_line)


def _is_named(symbol: str, frame: _Frame) -> bool:
    """Return whether a function of the module, ``helper`` or ``helper_3``, is that of a frame."""
    written = {ord("<"): "_", ord(">"): "_"}  # by some versions of JAX
    name, symbol = frame.function.rpartition(".")[2].translate(written), symbol.translate(written)
    rest = symbol.removeprefix(name)
    return bool(name) and (rest == "" or rest.lstrip("_").isdigit()) and symbol.startswith(name)


def _function(op: ir.Operation) -> str:
    """Return the name of the function that contains an op, or that it is."""
    while op.name != "func.func":
        op = op.parent.operation
    name: str = ir.StringAttr(op.attributes["sym_name"]).value
    return name


def _is_installed(file: str) -> bool:
    """Return whether a file is of an installed library, which the user does not change."""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def _roots() -> tuple[str, ...]:
    """Return the folders of packages, and the files of modules, whose lines are never shown."""
    found = {
        os.path.realpath(place)
        for name, module in list(sys.modules.items())
        if is_skipped(name) and "." not in name
        for place in getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
        if place
    }
    return tuple(f"{root}{os.sep}" if os.path.isdir(root) else root for root in found)
