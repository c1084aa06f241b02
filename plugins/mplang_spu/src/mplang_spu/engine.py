"""libspu: its compiler and its runtimes. Links are made in ``link``; no other imports it."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import spu.libspu as libspu
from spu.api import Io

from mplang_spu.link import LinkCommunicator
from mplang_spu.lowering import Diagnostic, Lowered, Target, lower
from mplang_spu.lowering.lookups import MAX_COMPARED

__all__ = ["Compiled", "Engine", "build", "compile", "io", "runtime_config", "spu_tracing"]

CACHED = 256  # compiled programs of this process


def _quiet() -> None:
    options = libspu.logging.LogOptions()
    options.log_level = libspu.logging.LogLevel.ERROR
    options.system_log_path = os.devnull
    libspu.logging.setup_logging(options)


_quiet()


_for_spu = jax.make_user_context(False)  # JAX's caches, and those of jax.compile, tell it apart


def _patch_sort() -> None:
    from jax._src.lax import lax

    original: Any = lax._canonicalize_float_for_sort
    lax._canonicalize_float_for_sort = lambda x: x if _for_spu.value else original(x)


def _patch_searchsorted() -> None:
    """Have ``searchsorted`` compare each number with all at once, not in turns."""
    from jax._src.numpy import lax_numpy

    by_turns, at_once = (
        getattr(lax_numpy, f"_searchsorted_via_{name}") for name in ("scan", "compare_all")
    )

    def search(unrolled: bool, numbers: Any, wanted: Any, side: str, dtype: Any) -> Any:
        if _for_spu.value and numbers.size * wanted.size <= MAX_COMPARED:
            return at_once(numbers, wanted, side, dtype)
        return by_turns(unrolled, numbers, wanted, side, dtype)

    lax_numpy._searchsorted_via_scan = search


_patch_sort()
_patch_searchsorted()


@contextlib.contextmanager
def spu_tracing() -> Iterator[None]:
    """Have JAX lower sorts and searches, in this thread, as SPU can run them.

    It has no NaN and no -0.0, and a turn of a loop costs as much as a large comparison.
    """
    with _for_spu(True):
        yield


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program of libspu.

    Attributes:
        code: in its own language.
        operands: public scalars that it takes after its operands.
        diagnostics: constants that the fixed point cannot hold.
    """

    code: bytes
    operands: tuple[np.ndarray[Any, Any], ...]
    diagnostics: tuple[Diagnostic, ...]


@functools.lru_cache(maxsize=CACHED)
def compile(text: str, secret: tuple[bool, ...], target: Target) -> Compiled:
    """Lower StableHLO, and compile it for SPU.

    Args:
        text: the StableHLO, within the limits of :func:`mplang_stablehlo.read`.
        secret: per operand whether it is a share; otherwise it is public.
        target: protocol, field and fixed point.

    Raises:
        ValueError: it is refused before libspu sees it.
        RuntimeError: libspu cannot compile it.
    """
    return build(lower(text, target), secret)


def build(lowered: Lowered, secret: Sequence[bool]) -> Compiled:
    """Compile what was lowered.

    Raises:
        RuntimeError: libspu cannot compile it.
    """
    visible = [visibility(is_secret) for is_secret in secret]
    visible += [visibility(False)] * len(lowered.operands)
    source = libspu.CompilationSource(libspu.SourceIRType.STABLEHLO, lowered.text, visible)
    code: bytes = libspu.compile(source, libspu.CompilerOptions())
    return Compiled(code, lowered.operands, lowered.diagnostics)


def runtime_config(config: Mapping[str, Any]) -> Any:
    """Return libspu's form of a configuration."""
    made = libspu.RuntimeConfig()
    made.protocol = getattr(libspu.ProtocolKind, config["protocol"])
    made.field = getattr(libspu.FieldType, config["field"])
    made.fxp_fraction_bits = config["fxp_fraction_bits"]
    for name, enum in (("sigmoid_mode", "SigmoidMode"), ("exp_mode", "ExpMode")):
        mode = config.get(name, "default")
        if mode != "default":
            prefix = name.removesuffix("_mode").upper()
            value = getattr(getattr(libspu.RuntimeConfig, enum), f"{prefix}_{mode.upper()}")
            setattr(made, "fxp_exp_mode" if name == "exp_mode" else name, value)
    return made


def io(parties: int, protocol: str, field: str, fxp: int) -> Io:
    """Return what makes and joins shares."""
    config = {"protocol": protocol, "field": field, "fxp_fraction_bits": fxp}
    return Io(parties, runtime_config(config))


class Engine:
    """Runs compiled programs with the other members, on a link; one job at a time.

    Args:
        link: to the others.
        config: protocol, field, precision.

    Attributes:
        name: of its link.
    """

    def __init__(self, link: LinkCommunicator, config: Mapping[str, Any]) -> None:
        self.name = link.name
        self._link: LinkCommunicator | None = link
        self._runtime = libspu.RuntimeWrapper(link.lctx, runtime_config(config))
        self._busy = threading.Lock()

    def acquire(self, tag_prefix: str, timeout: float = 0) -> bool:
        """Begin a job, whose messages go by keys ``place|tag``; tell whether it is possible."""
        if not self._busy.acquire(timeout=timeout):
            return False
        if self._link is not None:
            self._link.set_tag_prefix(tag_prefix)
        return self._link is not None

    def release(self) -> None:
        """End the job."""
        self._busy.release()

    def run(self, code: bytes, inputs: Sequence[Any], outputs: int) -> list[Any]:
        """Run a program on shares; its results are shares."""
        ins = [f"in{i}" for i in range(len(inputs))]
        outs = [f"out{i}" for i in range(outputs)]
        for name, value in zip(ins, inputs, strict=True):
            self._runtime.SetVar(name, value)
        self._runtime.Run(
            libspu.Executable(name="mplang", input_names=ins, output_names=outs, code=code)
        )
        assert self._link is not None
        self._link.check()
        made = [self._runtime.GetVar(name) for name in outs]
        for name in (*ins, *outs):
            self._runtime.DelVar(name)
        return made

    def close(self) -> None:
        """Let go of the link, also where a traceback still holds this object."""
        if self._link is not None:
            self._link.close()
        self._runtime = self._link = None


def share(meta: bytes, chunks: Sequence[bytes]) -> Any:
    """Return libspu's form of a share."""
    made = libspu.Share()
    made.meta = meta
    made.share_chunks = list(chunks)
    return made


def visibility(secret: bool) -> Any:
    """Return libspu's word for secret or public."""
    return libspu.Visibility.VIS_SECRET if secret else libspu.Visibility.VIS_PUBLIC
