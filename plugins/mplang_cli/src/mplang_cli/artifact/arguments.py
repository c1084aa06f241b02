"""Command-line arguments of programs: ``NAME[@PLACE]=VALUE``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mplang_core import ClusterSpec, MPType, TensorType, TraceContext, constant
from mplang_core.ext import ConfigError, ParseError, SimpHost, array_of, parse_base_type, parse_type

PUBLIC = "public"
"""The place of what all parties may know."""

_ARGUMENT = re.compile(r"(?P<name>[^@=]+?)(?:@(?P<place>[^=]+))?=(?P<text>.*)", re.DOTALL)
_TYPE = re.compile(r"(?P<base>.+?)(?:@(?P<place>\w[\w.-]*|\{[^}]*\}|\?))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Given:
    """Argument on the command line.

    Attributes:
        name: a parameter, or with dots a leaf of one: ``model.w``.
        place: whose it is, where that is said: a device, a mask, or ``public``.
        text: ``@file.npy``, JSON, or a type.
    """

    name: str
    place: str | None
    text: str

    @property
    def is_file(self) -> bool:
        """Whether it names a file."""
        return self.text.startswith("@")

    @property
    def is_type(self) -> bool:
        """Whether it is a type, and no value."""
        return not self.is_file and _json(self.text) is _NOTHING

    def value(self) -> Any:
        """Return the value.

        Raises:
            ConfigError: it is neither JSON nor a file of NumPy's.
        """
        if self.is_file:
            return _load(self.name, self.text[1:])
        found = _json(self.text)
        if found is _NOTHING:
            raise ConfigError(
                f"argument {self.name}: expected @file.npy or JSON, got {self.text[:60]!r}; a text "
                f"has quotes: {self.name}='\"…\"'",
                code="C007",
            )
        return found


def read_given(arguments: Iterable[str]) -> dict[str, Given]:
    """Return the arguments of a command line by name.

    Raises:
        ConfigError: one is not a ``NAME[@PLACE]=VALUE``, or is given twice.

    Example:
        >>> read_given(["x@P0=@data.npy"])["x"]
        Given(name='x', place='P0', text='@data.npy')
    """
    found: dict[str, Given] = {}
    for argument in arguments:
        match = _ARGUMENT.fullmatch(argument)
        if match is None:
            raise ConfigError(
                f"an argument is NAME=VALUE or NAME@PLACE=VALUE, got {argument!r}", code="C007"
            )
        given = Given(match["name"].strip(), match["place"], match["text"].strip())
        if given.name in found:
            raise ConfigError(f"argument {given.name} is given twice", code="C007")
        found[given.name] = given
    return found


def stand_in(text: str, cluster: ClusterSpec, name: str) -> Any:
    """Return a value without data, to trace with.

    Args:
        text: a type, ``f32[3]@{0}``, ``f32[3]@P1`` for one on a device, or ``f32[3]`` for
            what is public.
        cluster: the parties and devices.
        name: the argument's, for messages.

    Raises:
        ConfigError: it is not a type, or there is no such device.
    """
    match = _TYPE.fullmatch(text)
    place = match["place"] if match else None
    try:
        if match is None or place is None or place[0] in "{?":
            kind = parse_type(text)
        else:
            kind = parse_base_type(match["base"])
    except ParseError as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"argument {name}: {text!r} is not a type such as 'f32[3]@P0' ({reason})", code="C007"
        ) from error
    root = TraceContext(cluster)
    if isinstance(kind, MPType):
        if kind.pmask is not None and not kind.pmask <= cluster.mask:
            raise ConfigError(
                f"argument {name}: {kind} is at parties outside of {cluster.mask}", code="C007"
            )
        return root.parameter(kind)
    if place in (None, PUBLIC):
        return root.parameter(MPType(kind, cluster.mask), uniform=True)
    if place not in cluster.devices:
        there = ", ".join([PUBLIC, *cluster.devices])
        raise ConfigError(
            f"argument {name}: there is no device {place}; there are {there}", code="C007"
        )
    device = cluster.device(place)
    if kind.form is not device.kind.form:
        raise ConfigError(
            f"argument {name}: {device} holds no {kind.form.value} values such as {kind}; take it "
            "from one party, and have the program mp.seal it",
            code="C007",
        )
    return root.parameter(MPType(kind, device.mask), device)


def coerce(name: str, value: Any, kind: TensorType, exact: bool) -> np.ndarray[Any, Any]:
    """Return a value as a tensor of a type.

    Args:
        name: the argument's, for messages.
        value: an array, or what JSON has for one.
        kind: the type.
        exact: whether the element type must be the one of the value; JSON knows none.

    Raises:
        ConfigError: it does not fit.
    """
    try:
        found = array_of(value)
    except TypeError as error:
        raise ConfigError(f"argument {name}: {error}", code="C007") from None
    array = found
    integers = found.dtype.kind in "iu" and kind.dtype.is_integer
    if not exact and (integers or np.can_cast(found.dtype, kind.dtype.numpy, "same_kind")):
        with np.errstate(over="ignore"):
            array = found.astype(kind.dtype.numpy)
        if found.dtype.kind in "biu":
            lost = not np.array_equal(array, found)
        else:
            lost = bool(np.isfinite(found).all() and not np.isfinite(array).all())
        if lost:
            raise ConfigError(f"argument {name}: a number does not fit into {kind}", code="C007")
    wrong = kind.mismatch(array)
    if wrong:
        raise ConfigError(f"argument {name}: {wrong}", code="C007")
    return array


def data_at(host: SimpHost, name: str, given: Given, expected: MPType) -> Any:
    """Return a given value where a program expects it.

    Raises:
        ConfigError: it does not fit, or is nothing that a command line can give.
    """
    if not isinstance(expected.base, TensorType) or expected.pmask is None:
        raise ConfigError(
            f"argument {name}: a command line gives tensors to parties that are named, but it is "
            f"{expected}; run the artifact from Python",
            code="C007",
        )
    cluster: Any = host.cluster_spec
    if given.place is not None:
        said = stand_in(f"{expected.base}@{given.place}", cluster, name).type
        if said != expected:
            raise ConfigError(
                f"argument {name}: it is {expected}, not at {given.place}", code="C007"
            )
    array = coerce(name, given.value(), expected.base, given.is_file)
    if expected.pmask == host.mask:
        return array
    return constant(host, array, parties=expected.pmask)


_NOTHING: Any = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _load(name: str, path: str) -> Any:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ConfigError(f"argument {name}: cannot read {path}: {reason}", code="C007") from error
    if not isinstance(array, np.ndarray):
        raise ConfigError(
            f"argument {name}: {path} holds several arrays; save one, by np.save", code="C007"
        )
    return array
