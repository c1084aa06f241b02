"""Compilation of a function in a file, ``prog.py:fn``, to an artifact."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_origin

from mplang_cli.artifact.arguments import PUBLIC, Given, stand_in
from mplang_cli.artifact.core import Artifact
from mplang_cli.artifact.packing import make
from mplang_core import ClusterSpec, CompiledFunction, MPLangError, MPType, TensorType, compile
from mplang_core.ext import ConfigError, SimpHost, flatten, raised, unflatten

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def cluster_of(text: str) -> ClusterSpec:
    """Return a cluster for a YAML file, or for a number of parties.

    Raises:
        ConfigError: it cannot be read, or is missing.

    Example:
        >>> cluster_of("2").world_size
        2
    """
    if not text:
        raise ConfigError(
            "a program is for a cluster: --cluster c.yaml, or a number of parties", code="C007"
        )
    return ClusterSpec.simple(int(text)) if text.isdecimal() else ClusterSpec.from_yaml(text)


def backend_of(cluster: ClusterSpec) -> str:
    """Return the backend that a cluster's addresses name, the simulator where there are none.

    Example:
        >>> backend_of(ClusterSpec([{"address": "https://alice.example:9000"}]))
        'http'
    """
    scheme, there, _ = cluster.nodes[0].address.partition("://")
    return scheme.removesuffix("s") if there else "simulator"


def is_source(target: str) -> bool:
    """Return whether a target is a function in a file, not an artifact.

    Example:
        >>> is_source("prog.py:fn"), is_source("prog.mpl")
        (True, False)
    """
    return Path(target).suffix == ".py" or target.rpartition(":")[0].endswith(".py")


def find_function(target: str) -> Callable[..., Any]:
    """Import a file and return a function of it.

    Raises:
        ConfigError: there is no such file or function, or it cannot be imported.
    """
    path, _, name = target.rpartition(":")
    if not path.endswith(".py") or not name:
        raise ConfigError(f"expected prog.py:function, got {target!r}", code="C007")
    module = _imported(Path(path))
    fn = getattr(module, name, None)
    if isinstance(fn, CompiledFunction):
        fn = fn.fn
    if not callable(fn) or isinstance(fn, type):
        here = [n for n, f in vars(module).items() if inspect.isfunction(f)]
        raise ConfigError(
            f"{path} has no function {name!r}; it has {', '.join(here) or 'none'}", code="C007"
        )
    return fn


def compile_source(
    target: str, cluster: ClusterSpec, given: Mapping[str, Given], host: SimpHost | None = None
) -> Artifact:
    """Compile a function of a file.

    The type of an argument is what is given, or else what its annotation says: an ``MPType``,
    or ``Annotated[mp.MPObject, "f32[3]@P0"]``, where a nest of types may stand as well.

    Args:
        target: ``prog.py:fn``.
        cluster: what to compile it for.
        given: types and values by name.
        host: whose data sets it may name, beside those of ``mp.catalogue``.

    Raises:
        ConfigError: an argument has no type, or there is none of that name.
    """
    fn = find_function(target)
    signature, roots = inspect.signature(fn), {name.partition(".")[0] for name in given}
    parameters = {n: p for n, p in signature.parameters.items() if p.kind not in _VARIADIC}
    unknown = sorted(roots - set(parameters))
    if unknown:
        names = ", ".join(parameters) or "no arguments"
        raise ConfigError(
            f"{target} has no argument {', '.join(unknown)}; it takes {names}", code="C007"
        )
    hints = _annotations(fn)
    bound: OrderedDict[str, Any] = OrderedDict()
    for name, parameter in parameters.items():
        mine = {n: g for n, g in given.items() if n.partition(".")[0] == name}
        declared = _declared(hints.get(name), cluster, name)
        if declared is not None and not any(g.place or g.is_type for g in mine.values()):
            bound[name] = declared
        elif mine:
            bound[name] = _nested(name, {n: _leaf(g, cluster) for n, g in mine.items()})
        elif parameter.default is parameter.empty:
            raise ConfigError(
                f"{target} takes {name}, whose type and owner are unknown; add "
                f"--arg {name}='f32[3]@P0' (or such a type), or annotate it; to run it, give a "
                f"value: --arg {name}@P0='[1.5, 2.5]', or --arg {name}@P0=@file.npy",
                code="C007",
            )
    call = inspect.BoundArguments(signature, bound)
    compiled = compile(fn, cluster_spec=cluster)
    compiled.trace(host, *call.args, **call.kwargs)
    return make(compiled)


def _imported(path: Path) -> Any:
    name = f"__program_{path.stem}__"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"there is no file {path}", code="C007")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python prog.py` has it
    try:
        spec.loader.exec_module(module)
    except MPLangError:
        raise
    except Exception as error:
        del sys.modules[name]
        where, reason = raised(error), str(error)
        if isinstance(error, SyntaxError) and error.filename:  # no frame of the traceback has it
            where, reason = f"{Path(error.filename).name}:{error.lineno}: ", error.msg
        raise ConfigError(
            f"cannot import {path}: {where}{type(error).__name__}: {reason}", code="C007"
        ) from error
    return module


def _annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    inner = inspect.unwrap(fn)
    try:
        return inspect.get_annotations(inner, eval_str=True)
    except Exception:  # an annotation that cannot be evaluated is none of ours
        return inspect.get_annotations(inner) if inspect.isfunction(inner) else {}


def _declared(hint: Any, cluster: ClusterSpec, name: str) -> Any:
    """Return what an annotation says of an argument, or ``None``."""
    if isinstance(hint, MPType):
        return hint
    if get_origin(hint) is not Annotated:
        return None
    for note in hint.__metadata__:
        leaves, nest = flatten(note)
        if leaves and all(isinstance(leaf, str | MPType) for leaf in leaves):
            made = [stand_in(x, cluster, name) if isinstance(x, str) else x for x in leaves]
            return unflatten(nest, made)
    return None


def _leaf(given: Given, cluster: ClusterSpec) -> Any:
    if given.is_type:
        place = f"@{given.place}" if given.place is not None else ""
        return stand_in(given.text + place, cluster, given.name)
    value = given.value()
    if given.place is not None:
        try:
            kind = TensorType.of(value)
        except TypeError as error:
            raise ConfigError(f"argument {given.name}: {error}", code="C007") from None
        return stand_in(f"{kind}@{given.place}", cluster, given.name)
    if given.is_file:
        raise ConfigError(
            f"argument {given.name}: the owner of {given.text[1:]} is unknown; write "
            f"{given.name}@P0={given.text}, or @{PUBLIC} in place of @P0 if all may know it",
            code="C007",
        )
    return value


def _nested(name: str, leaves: Mapping[str, Any]) -> Any:
    """Return the value of a parameter; leaves with dots in their names make dicts."""
    tree: dict[str, Any] = {}
    for path, leaf in leaves.items():
        *around, last = path.split(".")
        inner: Any = tree
        for key in around:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last in inner:
            raise ConfigError(f"argument {path}: {name} is given as a whole, too", code="C007")
        inner[last] = leaf
    return tree[name]
