"""Compiler and runtimes of libspu."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax._src import source_info_util
from mplang_stablehlo import read

from mplang_spu import linear_algebra
from mplang_spu.compiler import compile_text
from mplang_spu.libspu import Io, libspu, version
from mplang_spu.link import LinkCommunicator
from mplang_spu.lowering import BadConstant, Lowered, Target, lower
from mplang_spu.lowering.lookups import MAX_COMPARED
from mplang_spu.oblivious_transfer import Way
from mplang_spu.share_type import MAX_CODE
from mplang_spu.target import PRODUCTS

CACHED = 256  # compiled programs, and small public arrays, kept by this process


def _quiet() -> None:
    options = libspu.logging.LogOptions()
    options.log_level = libspu.logging.LogLevel.ERROR
    options.system_log_path = os.devnull
    libspu.logging.setup_logging(options)


_quiet()


_for_spu = jax.make_user_context(None)  # part of the keys of JAX's and jax.compile's caches


def _patch_sort() -> None:
    """Skip JAX's normalization of NaN and -0.0 before sorts: SPU has neither."""
    from jax._src.lax import lax

    original: Any = lax._canonicalize_float_for_sort
    lax._canonicalize_float_for_sort = lambda x: x if _for_spu.value else original(x)


def _patch_searchsorted() -> None:
    """Use the comparison method of ``searchsorted`` instead of a loop, for small tables."""
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
source_info_util.register_exclusion(os.path.dirname(__file__))  # the user's line is told
linear_algebra.register(lambda: _for_spu.value)


@contextlib.contextmanager
def spu_tracing(target: Target = Target("ABY3", "FM128", 40)) -> Iterator[None]:  # noqa: B008
    """Trace with SPU's implementations of sorts, searches and decompositions, in this thread.

    SPU has no NaN and no -0.0, and one iteration of a loop costs as much as a large comparison.

    Args:
        target: the fixed point that the code will run in.
    """
    with _for_spu(target):
        yield


@dataclass(frozen=True, slots=True)
class Compiled:
    """Program compiled for libspu's runtime.

    Attributes:
        code: in libspu's own language, PPHLO.
        digest: the SHA-256 of the code, in hexadecimal.
        operands: public scalars that it takes after its own operands.
        diagnostics: constants that the fixed point cannot represent.
        unreduced: the numbers of the results whose integers may be beyond their type.
    """

    code: bytes
    digest: str
    operands: tuple[np.ndarray[Any, Any], ...]
    diagnostics: tuple[BadConstant, ...]
    unreduced: frozenset[int] = frozenset()


@functools.lru_cache(maxsize=CACHED)
def compile(
    text: str, secret: tuple[bool, ...], target: Target, unreduced: frozenset[int] = frozenset()
) -> Compiled:
    """Lower StableHLO and compile it for SPU.

    Args:
        text: the StableHLO, within the limits of :func:`mplang_stablehlo.read`.
        secret: per operand whether it is a share; otherwise it is public.
        target: protocol, field and fixed point.
        unreduced: the numbers of the shares whose integers may be beyond their type.

    Returns:
        The program.

    Raises:
        ValueError: admission or lowering refuses it.
        SecretLoopError: the condition of a loop is secret.
        DamagedProcessError: libspu fails to compile it.
    """
    return build(lower(text, target, unreduced=unreduced), secret)


@functools.lru_cache(maxsize=CACHED)
def compile_code(
    code: bytes, secret: tuple[bool, ...], target: Target, unreduced: frozenset[int] = frozenset()
) -> Compiled:
    """Compile StableHLO as programs have it, which is read again only if it is another one.

    Args:
        code: compressed StableHLO.
        secret: see :func:`compile`.
        target: see :func:`compile`.
        unreduced: see :func:`compile`.

    Returns:
        The program.

    Raises:
        ValueError: admission or lowering refuses it.
        SecretLoopError: the condition of a loop is secret.
        DamagedProcessError: libspu fails to compile it.
    """
    return compile(read(code, MAX_CODE), secret, target, unreduced)


class SecretLoopError(ValueError):
    """Raised if the condition of a loop is secret."""

    def __init__(self) -> None:
        super().__init__(
            "the condition of a loop depends on secrets, so all members would learn it; give "
            "lax.fori_loop a fixed number of turns, or reveal the condition outside of the "
            "function, to mp.while_loop or mp.uniform_cond, as by mp.while_loop(lambda x: "
            "mp.reveal(mp.device('SP0')(again)(x)), mp.device('SP0')(step), x); "
            "spu.experimental.reveal discloses nothing here"
        )


def build(lowered: Lowered, secret: Sequence[bool]) -> Compiled:
    """Compile a lowered module.

    Args:
        lowered: the module.
        secret: per operand whether it is a share.

    Returns:
        The program.

    Raises:
        SecretLoopError: the condition of a loop is secret.
        DamagedProcessError: libspu fails to compile it.
    """
    visible = [visibility(is_secret) for is_secret in secret]
    visible += [visibility(False)] * len(lowered.operands)
    code = compile_text(lowered.text, visible)
    _check_conditions(code)
    digest = hashlib.sha256(code).hexdigest()
    return Compiled(code, digest, lowered.operands, lowered.diagnostics, lowered.unreduced)


def _check_conditions(code: bytes) -> None:
    """Refuse loops with a secret condition: libspu's runtime would fail at them.

    Its compiler tells in PPHLO's types what is secret. The last line of a condition returns it.
    """
    for line, following in itertools.pairwise(code.decode().splitlines()):
        if following.strip() == "} do {" and "!pphlo.secret<" in line:
            raise SecretLoopError


_CHOICES = (
    ("sigmoid_mode", "sigmoid_mode", "SigmoidMode"),
    ("exp_mode", "fxp_exp_mode", "ExpMode"),
    ("sort_method", "sort_method", "SortMethod"),
)
"""Settings of :class:`SpuConfig` that are a choice, with libspu's names for the field and type."""

_BESIDE_PRODUCTS = {"sigmoid_mode": "default", "exp_mode": "pade"}
"""What libspu takes where products do not do."""


def runtime_config(config: Mapping[str, Any], ot: Way = "softspoken") -> Any:
    """Return libspu's form of a configuration.

    Args:
        config: of the device.
        ot: how CHEETAH makes oblivious transfers.

    Raises:
        RuntimeError: this build of libspu does not know the way.
    """
    made = libspu.RuntimeConfig()
    ways = {"cheetah_2pc_config": {"ot_kind": f"YACL_{ot.capitalize()}"}}
    if not made.ParseFromJsonString(json.dumps(ways)):  # it keeps its own choice, without an error
        raise RuntimeError(f"libspu {version} does not know oblivious transfers by {ot}")
    made.protocol = getattr(libspu.ProtocolKind, config["protocol"])
    made.field = getattr(libspu.FieldType, config["field"])
    made.fxp_fraction_bits = config["fxp_fraction_bits"]
    for name, field, enum in _CHOICES:
        choice = _BESIDE_PRODUCTS[name] if config.get(name) == PRODUCTS else config.get(name)
        if choice not in (None, "default"):
            prefix = name.partition("_")[0].upper()
            value = getattr(getattr(libspu.RuntimeConfig, enum), f"{prefix}_{choice.upper()}")
            setattr(made, field, value)
    return made


def io(parties: int, protocol: str, field: str, fxp: int) -> Io:
    """Return libspu's object for sharing and reconstruction.

    Args:
        parties: the number of members.
        protocol: ``ABY3``, ``CHEETAH`` or ``SEMI2K``.
        field: ``FM32``, ``FM64`` or ``FM128``.
        fxp: the fraction bits.

    Returns:
        An object with ``make_shares`` and ``reconstruct``.
    """
    config = {"protocol": protocol, "field": field, "fxp_fraction_bits": fxp}
    return Io(parties, runtime_config(config))


@functools.lru_cache(maxsize=CACHED)
def public_shares(
    setting: tuple[int, str, str, int], dtype: str, shape: tuple[int, ...], data: bytes
) -> Sequence[Any]:
    """Return libspu's form of a small array that all members know, which is the same each time.

    Programs have such arrays for their constants, and run again and again.

    Args:
        setting: the arguments of :func:`io`.
        dtype: of the array, as NumPy writes it.
        shape: its shape.
        data: its bytes, in the order of C.

    Returns:
        A ``libspu.Share`` per member, which nobody changes.
    """
    array = np.frombuffer(data, dtype).reshape(shape)
    made: Sequence[Any] = io(*setting).make_shares(array, visibility(False))
    return made


class Engine:
    """SPU runtime of one member on a link, for one job at a time.

    Args:
        link: to the other members.
        config: protocol, field and precision.
        ot: how CHEETAH makes oblivious transfers, which it sets up when it first needs them.

    Attributes:
        name: of its link.
        ot: how it makes oblivious transfers.
        compared: how many comparisons the jobs of its members have taken as long as.
    """

    def __init__(
        self, link: LinkCommunicator, config: Mapping[str, Any], ot: Way = "softspoken"
    ) -> None:
        self.name, self.ot, self.compared = link.name, ot, 0.0
        self._link: LinkCommunicator | None = link
        self._runtime = libspu.RuntimeWrapper(link.lctx, runtime_config(config, ot))
        self._busy = threading.Lock()

    def acquire(self, tag_prefix: str, timeout: float = 0) -> bool:
        """Begin a job, if the engine is free and not closed.

        Args:
            tag_prefix: the key prefix of the job's messages, which have keys ``tag_prefix|tag``.
            timeout: seconds to wait for the current job.

        Returns:
            Whether the job may run.
        """
        if not self._busy.acquire(timeout=timeout):
            return False
        if self._link is not None:
            self._link.set_tag_prefix(tag_prefix)
        return self._link is not None

    def release(self) -> None:
        """End the job."""
        self._busy.release()

    def run(self, code: bytes, inputs: Iterable[Any], outputs: int) -> list[Any]:
        """Run a compiled program on shares.

        Args:
            code: as :func:`compile` gives it.
            inputs: libspu's share of each operand; none is kept, as the runtime copies it.
            outputs: the number of results.

        Returns:
            libspu's share of each result.

        Raises:
            RuntimeError: libspu fails.
            CommError: a message was not sent, or did not arrive in time.
        """
        ins = [self.set(f"in{i}", value) for i, value in enumerate(inputs)]
        outs = [f"out{i}" for i in range(outputs)]
        self.run_on_variables(code, ins, outs)
        made = [self.get(name) for name in outs]
        self.drop([*ins, *outs])
        return made

    def run_on_variables(self, code: bytes, ins: Sequence[str], outs: Sequence[str]) -> None:
        """Run a compiled program on variables of the runtime.

        Args:
            code: as :func:`compile` gives it.
            ins: the variable of each operand.
            outs: the variable of each result.

        Raises:
            RuntimeError: libspu fails.
            CommError: a message was not sent, or did not arrive in time.
        """
        assert self._link is not None
        try:
            self._runtime.Run(
                libspu.Executable(
                    name="mplang", input_names=list(ins), output_names=list(outs), code=code
                )
            )
        except RuntimeError as error:
            late = self._link.timeout_of(error)
            if late is None:
                raise
            raise late from error
        self._link.check()

    def set(self, name: str, share: Any) -> str:
        """Set a variable of the runtime to a copy of a share, and return its name."""
        self._runtime.SetVar(name, share)
        return name

    def get(self, name: str) -> Any:
        """Return a copy of a variable, as libspu's share."""
        return self._runtime.GetVar(name)

    def describe(self, name: str) -> Any:
        """Return libspu's description of a variable, without its data."""
        return self._runtime.GetVarMeta(name)

    def drop(self, names: Iterable[str]) -> None:
        """Delete variables of the runtime."""
        for name in names:
            self._runtime.DelVar(name)

    @property
    def is_closed(self) -> bool:
        """Whether the link was closed, and all variables are gone."""
        return self._link is None

    def close(self) -> None:
        """Close the link and drop the runtime, even if a traceback still holds this object."""
        if self._link is not None:
            self._link.close()
        self._runtime = self._link = None


def visibility(secret: bool) -> Any:
    """Return libspu's visibility, secret or public."""
    return libspu.Visibility.VIS_SECRET if secret else libspu.Visibility.VIS_PUBLIC
