"""Device-level API: ``device``, ``put``, ``seal`` and ``reveal``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, cast, overload

from mplang_core.device.advice import disclosed, no_way, opened_for
from mplang_core.device.capability import Route, route
from mplang_core.device.controller import is_of_controller, run_here
from mplang_core.device.kinds import (
    CONSENTS,
    Consent,
    Device,
    Lowering,
    device_kinds,
    find_joint_run,
    find_transfer,
)
from mplang_core.display import ShownFunction
from mplang_core.edsl import (
    InterpContext,
    MPContext,
    MPObject,
    constant,
    find_ctx,
    open_ctx,
    with_ctx,
)
from mplang_core.edsl.bounds import read_range
from mplang_core.edsl.literals import MAX_LITERAL, is_literal, read_args, warn_of_data
from mplang_core.edsl.peval import is_function, peval, run_program
from mplang_core.errors import DisclosureError, FeCapabilityError, TraceError
from mplang_core.feop.decorator import is_feop, meta_of
from mplang_core.feop.frontends import has_compiler
from mplang_core.feop.materialize import fe_materialize
from mplang_core.feop.program import FeProgram, Operand, PFunction, PyTreeDef, flatten, unflatten
from mplang_core.feop.registry import registry
from mplang_core.ir.source_line import at
from mplang_core.simp.ops import pcall_static
from mplang_core.tracebacks import of_user
from mplang_core.types import BaseType, Form, TensorType, is_table, table_advice

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta

LITERAL_ADVICE = (
    f"a literal of more than {MAX_LITERAL} elements stands in a program: all parties of the "
    "program can read it. If it is private, mp.put it at its party outside of the function, "
    "inside of `with mp.with_ctx(host):`, and pass the value as an argument; or read a data set. "
    "If it is meant to be public, write mp.public(...) around it"
)


class _Array(Protocol):
    """Protocol of an array of NumPy, JAX and the like."""

    @property
    def __array__(self) -> Any: ...


class _Table(Protocol):
    """Protocol of a frame of Arrow, pandas or polars."""

    @property
    def columns(self) -> Any: ...


class _Dataclass(Protocol):
    """Protocol of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


_Row: TypeAlias = list[int] | list[float] | list[complex] | list[bool]
_Rows: TypeAlias = list[list[int]] | list[list[float]] | list[list[complex]] | list[list[bool]]
Plain: TypeAlias = MPObject | complex | _Array | _Row | _Rows | _Table
"""One value, or a literal of one."""

K = TypeVar("K")
D = TypeVar("D", bound=_Dataclass | list[MPObject])
Nest = TypeVar("Nest", bound=tuple[Any, ...] | list[MPObject] | dict[Any, Any] | _Dataclass)
"""Type of a nest of values, and of nothing else: mypy says ``Any`` where two overloads fit."""


class Devices(Protocol):
    """Protocol of a cluster's devices by name."""

    @property
    def devices(self) -> Mapping[str, Any]:
        """The descriptions of the devices by name."""

    def device(self, name: str) -> Device:
        """Return a device; raise ``ConfigError`` if its kind is not installed."""


def device(
    name: str | None = None, **how: object
) -> Callable[[Callable[..., Any]], Callable[..., MPObject]]:
    """Return a decorator that runs functions on a device.

    Args:
        name: the device. By default the device of the arguments; if they are on several, the
            only one that all of them can move to without consent.
        **how: how functions of values that stay with their parties are run there, such as
            ``match="psi"`` for queries over tables of two parties (package mplang-joins).

    Returns:
        A decorator of a feop, a Python function, or a :class:`FeProgram`. The decorated function
        takes nests of values and literals; that of a compiler takes the function to compile first.
        Values on other devices move to the device if this needs no consent. The results are on the
        device; for type checkers a result is one value, which can be unpacked and indexed.
        :func:`mplang_core.frontend` tells which frontend compiles a Python function.

    Raises:
        ConfigError: there is no such device.
        DisclosureError: moving an argument to the device would disclose it.
        FeCapabilityError: the device cannot run the function; the message has the reasons.
        TraceError: no device can be inferred.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     x = mp.put("P0", [1.0, 2.0])
        ...     return mp.device("P0")(lambda x: x * 2)(x)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([2., 4.])
    """
    if name is not None:
        _check_name(name)
        if (here := open_ctx()) is not None:
            _device(here, name)  # so that a wrong name is told where it stands

    def on(fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, MPObject):
            raise TraceError(f"{at()}expected a function, as mp.device('P0')(fn)(x), got {fn!r}")

        @of_user
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            leaves, spec = read_args(args, kwargs)
            ctx = find_ctx(leaves)
            with with_ctx(ctx):
                if name is None and is_of_controller(fn):
                    return run_here(ctx, fn, args, kwargs)
                target = _infer(ctx, leaves) if name is None else _device(ctx, name)
                if is_of_controller(fn) and not how:
                    return _map(run_here(ctx, fn, args, kwargs), lambda c, x: _put(c, x, target))
                result = _run_jointly(ctx, target, fn, leaves, spec, how)
                outs, out_spec = flatten(result)
                return unflatten(out_spec, [ctx.place(out, target) for out in outs])

        return ShownFunction(run, f"<{getattr(fn, '__name__', fn)} on {name or 'a device'}>")

    return ShownFunction(on, f"<{name or 'a device'}; call it with a function>")


@overload
def put(target: str, x: Plain, *, range: Any = None) -> MPObject: ...
@overload
def put(target: str, x: tuple[Any, ...], *, range: Any = None) -> tuple[MPObject, ...]: ...
@overload
def put(target: str, x: dict[K, Any], *, range: Any = None) -> dict[K, MPObject]: ...
@overload
def put(target: str, x: D, *, range: Any = None) -> D: ...
@of_user
def put(target: str, x: Any, *, range: Any = None) -> Any:
    """Move values to a device, with the consent ``put``.

    A literal in a traced function is public: all parties of the program can read it, whatever
    the device. Private data is put outside of the function, and passed as an argument.

    Args:
        target: the device. A move to a ``PPU`` sends plain values to its party; a move to an
            ``SPU`` secret-shares them.
        x: a nest of values and literals. In a traced function, a literal of more than 64
            elements shows a :class:`mplang_core.errors.LiteralWarning`.
        range: ``(low, high)``, inclusive bounds of all elements. The holders check them before
            the move; a party with an element outside fails without disclosing the element.
            :func:`mplang_analysis.ranges` uses the bounds. An argument of a program brings no
            range: put it with one within the program.

    Returns:
        The same nest, on the device.

    Raises:
        DisclosureError: the move of a protected value needs the consent ``reveal``.
        TraceError: the range is invalid, or a value with a range is not a plain tensor of real
            numbers.
        PartyError: an element is outside of the range (when the program runs).

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     with mp.with_ctx(sim):  # outside of the function: only party 0 gets it
        ...         x = mp.put("P0", [1, 2])
        ...     mp.fetch(sim, mp.evaluate(sim, lambda x: mp.put("P1", x), x))
        array([1, 2])
    """
    bounds = None if range is None else read_range(range)
    return _map(x, lambda ctx, leaf: _put(ctx, leaf, _device(ctx, target), bounds))


@overload
def seal(x: Plain, to: str | None = None, *, range: Any = None) -> MPObject: ...
@overload
def seal(
    x: tuple[Any, ...], to: str | None = None, *, range: Any = None
) -> tuple[MPObject, ...]: ...
@overload
def seal(x: dict[K, Any], to: str | None = None, *, range: Any = None) -> dict[K, MPObject]: ...
@overload
def seal(x: D, to: str | None = None, *, range: Any = None) -> D: ...
@of_user
def seal(x: Any, to: str | None = None, *, range: Any = None) -> Any:
    """Move values to a protected device.

    A literal in a traced function is public, and is not protected by sealing it; see :func:`put`.

    Args:
        x: a nest of values and literals.
        to: the protected device; by default the only one of the cluster.
        range: the bounds of all elements; see :func:`put`.

    Returns:
        The same nest, on the device.

    Raises:
        TraceError: the device is not protected, the cluster has none or several, or the range
            is invalid.
        PartyError: an element is outside of the range (when the program runs).
    """
    bounds = None if range is None else read_range(range)

    def move(ctx: MPContext, leaf: Any) -> MPObject:
        target = _protected(ctx) if to is None else _device(ctx, to)
        if target.kind.form is Form.PLAIN:
            raise TraceError(
                f"{at()}seal: {target} holds values in plain; mp.put is for that", code="T008"
            )
        return _put(ctx, leaf, target, bounds)

    return _map(x, move)


@overload
def reveal(x: Plain, to: str | None = None) -> MPObject: ...
@overload
def reveal(x: Nest, to: str | None = None) -> Nest: ...
@of_user
def reveal(x: Any, to: str | None = None) -> Any:
    """Disclose values, with the consent ``reveal``.

    Args:
        x: a nest of values.
        to: the plain device that gets them; all parties by default.

    Returns:
        The same nest of plain values: on the device, or on no device and held by all parties.

    Raises:
        ConfigError: there is no such device.
        TraceError: the device is protected, there is no transfer, or a value is a
            ciphertext, a single share or a key, which a move does not open.
    """

    def move(ctx: MPContext, leaf: Any) -> MPObject:
        target = None if to is None else _device(ctx, to)
        if target is not None and target.kind.form is not Form.PLAIN:
            raise TraceError(
                f"{at()}reveal: {target} holds no plain values; mp.seal is for that", code="T008"
            )
        _check_opens(leaf)
        return _move(ctx, leaf, target, "reveal")

    return _map(x, move)


def _check_opens(leaf: Any) -> None:
    """Refuse to reveal what the transfers of its device move, but do not open."""
    if not isinstance(leaf, MPObject) or leaf.base_type.form in (Form.PLAIN, Form.KEY):
        return  # a key is refused by every move
    src, form = cast("Device | None", leaf.device), leaf.base_type.form
    if src is None or form is not src.kind.form:
        raise TraceError(
            f"{at()}reveal: {leaf!s} is a {form.value}, and would be one at its readers, too. "
            "Decrypt or open it at a party that can, as the holder of its key, and reveal the "
            "result; mp.put moves it as it is",
            code="T008",
        )


# -- moving


def _map(x: Any, move: Callable[[MPContext, Any], MPObject]) -> Any:
    leaves, spec = read_args((x,), {})
    ctx = find_ctx(leaves)
    with with_ctx(ctx):
        (args, _) = unflatten(spec, [move(ctx, leaf) for leaf in leaves])
    return args[0]


def _put(
    ctx: MPContext, leaf: Any, dst: Device, bounds: tuple[float, float] | None = None
) -> MPObject:
    """Move a value; its holders check its bounds first."""
    if not isinstance(leaf, MPObject):
        if not isinstance(ctx, InterpContext):
            warn_of_data(leaf, LITERAL_ADVICE)
        leaf = _constant(leaf, dst)
    if bounds is not None:
        leaf = _checked(ctx, ctx.adopt(leaf), dst, bounds)
    return _move(ctx, leaf, dst, "put")


def _constant(literal: Any, dst: Device | None) -> MPObject:
    """Return a literal as a value at the parties of a plain device; at all for any other."""
    is_plain = dst is not None and dst.kind.form is Form.PLAIN
    return constant(literal, parties=dst.mask if dst and is_plain else None)


def _checked(ctx: MPContext, value: MPObject, dst: Device, bounds: tuple[float, float]) -> MPObject:
    kind = value.base_type
    if not isinstance(kind, TensorType):
        raise TraceError(
            f"{at()}a range is of plain tensors, which who has them can check; got {value!r}. "
            "Declare it where the value is first put or sealed",
            code="T017",
        )
    mask = value.pmask
    if mask is not None and dst.mask <= mask:
        mask = dst.mask  # other holders may have other values
    attrs = {"low": bounds[0], "high": bounds[1]}
    (checked,) = peval(PFunction("simp.bounded", (kind,), (kind,), attrs), [value], mask)
    return ctx.place(checked, value.device, uniform=value.uniform)


def _move(ctx: MPContext, leaf: Any, dst: Device | None, said: Consent) -> MPObject:
    """Move one value if the program's consent suffices."""
    value = ctx.adopt(leaf if isinstance(leaf, MPObject) else _constant(leaf, dst))
    src = cast("Device | None", value.device)
    if src == dst and (dst is not None or (value.pmask == ctx.mask and value.uniform)):
        return value
    if (way := find_transfer(src, dst)) is None:
        raise TraceError(no_way(value, src, dst, _devices(ctx)), code="T008")
    needed = way.required(value, src, dst)
    if needed not in CONSENTS[: CONSENTS.index(said) + 1]:
        raise DisclosureError(disclosed(value, src, dst, needed))
    is_plain = dst is None or dst.kind.form is Form.PLAIN
    return ctx.place(way.move(value, src, dst), dst, uniform=is_plain or None)


def _bring(ctx: MPContext, leaf: Any, dst: Device) -> Any:
    """Return an argument on a device. Numbers stay literals and are compiled in."""
    if isinstance(leaf, MPObject):
        here = ctx.adopt(leaf)
        public = here.device is None and here.base_type.form is Form.PLAIN
        held = here.pmask is not None and dst.mask <= here.pmask
        if public and held and (here.uniform or len(dst.mask) == 1):
            return here  # public to all members
        return _move(ctx, here, dst, "auto")
    if is_literal(leaf) and hasattr(leaf, "shape"):
        return constant(leaf, parties=dst.mask)
    if is_table(leaf):
        raise TraceError(f"{at()}{table_advice(leaf)}", code="T013")
    return leaf


# -- running


def _run(ctx: MPContext, target: Device, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if is_function(fn):
        if target.kind.form is not Form.PLAIN:
            raise FeCapabilityError(
                f"{at()}an @mp.function is a program of several values; {target} runs feops and "
                "plain Python functions. Call it without a device, or drop the decorator"
            )
        return pcall_static(target.mask, fn, *args, **kwargs)
    if any(isinstance(leaf, MPObject) for leaf in flatten(kwargs)[0]):
        fn, args, kwargs = _with_keywords(fn, args, kwargs)
    meta = _meta(fn)
    lowering = _lowering(target, fn, args) if meta is None else _route(ctx, target, meta).lowering
    if lowering is not None:
        if meta is not None and isinstance(fn, FeProgram):
            raise FeCapabilityError(
                f"{at()}{target} compiles functions itself; this is a program of {meta.name} for a "
                f"party. Call mp.device({target.name!r})(compiler)(fn, x) with the function"
            )
        return run_program(_lowered(lowering, target, fn, args, kwargs), target.mask)
    device: dict[str, Any] = {"kind": target.kind, "members": len(target.mask)}
    device |= {"config": target.config, "frontends": target.frontends}
    return run_program(fe_materialize(fn, *args, **device, **kwargs), target.mask)


def _run_jointly(
    ctx: MPContext, target: Device, fn: Callable[..., object], leaves: Sequence[object],
    spec: PyTreeDef, how: Mapping[str, object],
) -> object:  # fmt: skip
    """Run a function on values that are brought to the device, or that stay where they are."""
    there = [ctx.adopt(leaf) if isinstance(leaf, MPObject) else leaf for leaf in leaves]
    joint = find_joint_run(target, [leaf for leaf in there if isinstance(leaf, MPObject)])
    unknown = how.keys() - (() if joint is None else joint.options)
    if unknown:
        known = "".join(f"; it has {name}=" for name in (joint.options if joint else ()))
        raise TraceError(
            f"{at()}{target.name} has no {min(unknown)}= for functions of these values{known}"
        )
    if joint is None:
        here = [_bring(ctx, leaf, target) for leaf in leaves]
        return _run(ctx, target, fn, *unflatten(spec, here))
    args, kwargs = unflatten(spec, there)
    if any(isinstance(leaf, MPObject) for leaf in flatten(kwargs)[0]):
        fn, args, kwargs = _with_keywords(fn, args, kwargs)
    return joint.run(target, fn, args, kwargs, **how)


def _meta(fn: Any) -> FeMeta | None:
    """Return the metadata of a feop, or of the feop that made a program."""
    if isinstance(fn, FeProgram):
        fn = registry.feops.get(str(fn.meta.get("name", "")))
    return meta_of(fn) if is_feop(fn) else None


def _with_keywords(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return a call with positional operands alone; compilers support no keyword operands."""
    if is_feop(fn) and meta_of(fn).op_kind == "compiler" and args:
        function, args, kwargs = _with_keywords(args[0], args[1:], kwargs)
        return fn, (function, *args), kwargs
    if is_feop(fn) or isinstance(fn, FeProgram):
        return fn, args, kwargs

    @functools.wraps(fn)
    def call(args: Any, kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call, (args, kwargs), {}


def _route(ctx: MPContext, target: Device, meta: FeMeta) -> Route:
    world = len(ctx.mask)
    found = route(meta, target, world)
    if found.fits:
        return found
    fitting = [device for device in _devices(ctx) if route(meta, device, world).fits]
    names = ", ".join(device.name for device in fitting) or "none"
    raise FeCapabilityError(
        f"{at()}{target} cannot run {meta.name}: {'; '.join(found.reasons)}. Devices here that "
        f"can: {names}{opened_for(target, fitting)}"
    )


def _lowering(target: Device, fn: Callable[..., Any], args: Any) -> Lowering | None:
    """Return the lowering for a Python function that no frontend compiles for the device itself."""
    if isinstance(fn, FeProgram) or target.kind.lowering is None:
        return None
    types = [leaf.base_type for leaf in flatten(args)[0] if isinstance(leaf, MPObject)]
    compiled = has_compiler(target.kind, len(target.mask), types)
    return None if compiled else target.kind.lowering


def _lowered(
    lowering: Lowering, target: Device, fn: Callable[..., Any], args: Any, kwargs: Any
) -> FeProgram:
    """Return a feop's program compiled for a device; the feop gets operands of plain types."""
    leaves, spec = flatten(args)
    values = [leaf for leaf in leaves if isinstance(leaf, MPObject)]

    def make(types: Sequence[BaseType]) -> FeProgram:
        given = iter(map(Operand, types, values))
        seen = [next(given) if isinstance(leaf, MPObject) else leaf for leaf in leaves]
        program = fe_materialize(fn, *unflatten(spec, seen), frontends=target.frontends, **kwargs)
        return replace(program, inputs=tuple(operand.value for operand in program.inputs))

    return lowering.lower(make, [value.base_type for value in values], target.config)


# -- choosing


def _infer(ctx: MPContext, leaves: Iterable[Any]) -> Device:
    values = [ctx.adopt(leaf) for leaf in leaves if isinstance(leaf, MPObject)]
    mine = list({value.device.name: value.device for value in values if value.device}.values())
    if not mine:
        raise TraceError(
            f"{at()}no argument is on a device, so none can be inferred; name one, as in "
            f"mp.device({next(iter(_cluster(ctx).devices))!r})",
            code="T007",
        )
    if len(mine) == 1:
        return cast(Device, mine[0])
    for candidates in (cast("list[Device]", mine), _devices(ctx)):
        fitting = [dev for dev in candidates if all(_moves_freely(v, dev) for v in values)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting and candidates is mine:
            raise TraceError(
                f"{at()}the arguments are on {', '.join(dev.name for dev in mine)}, and each of "
                f"{', '.join(dev.name for dev in fitting)} may run it; name one, as in "
                f"mp.device({fitting[0].name!r})",
                code="T007",
            )
    names = ", ".join(dev.name for dev in mine)
    raise DisclosureError(
        f"{at()}the arguments are on {names}, and no single device takes them all without "
        "disclosing one; seal or put them first, or name a protected device",
        code="D002",
    )


def _moves_freely(value: MPObject, dst: Device) -> bool:
    if value.device is None or value.device == dst:
        return True
    way = find_transfer(cast(Device, value.device), dst)
    return way is not None and way.required(value, value.device, dst) == "auto"


def _protected(ctx: MPContext) -> Device:
    found = [dev for dev in _devices(ctx) if dev.kind.form is not Form.PLAIN]
    if len(found) == 1:
        return found[0]
    for name, spec in _cluster(ctx).devices.items():
        if spec.kind not in device_kinds:
            _device(ctx, name)  # raises an error that says what to install
    names = ", ".join(dev.name for dev in found) or "none"
    advice = f", as in mp.seal(x, to={found[0].name!r})" if found else "; add one to its devices"
    raise TraceError(
        f"{at()}which device is to protect it? This cluster has: {names}{advice}", code="T007"
    )


def _devices(ctx: MPContext) -> list[Device]:
    """Return the devices whose kinds are installed."""
    cluster = _cluster(ctx)
    return [
        cluster.device(name) for name, spec in cluster.devices.items() if spec.kind in device_kinds
    ]


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TraceError(f"{at()}name a device, as mp.put('P0', x); got {type(name).__name__}")


def _device(ctx: MPContext, name: str) -> Device:
    _check_name(name)
    return _cluster(ctx).device(name)


def _cluster(ctx: MPContext) -> Devices:
    return cast(Devices, ctx.cluster_spec)
