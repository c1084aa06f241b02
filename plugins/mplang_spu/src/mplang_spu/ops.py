"""Ops of the dialect ``spu``. Imports neither libspu nor JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mplang_analysis import (
    ChangeRule,
    Changes,
    Constant,
    ConstantsRule,
    CostRule,
    PrecisionRule,
    RangeRule,
    SideChannelRule,
    SideChannels,
    SplitRule,
)
from mplang_cache import compiled_once
from mplang_stablehlo import constants_of_code

from mplang_core import (
    BaseType,
    FeProgram,
    FeSignature,
    Mask,
    PFunction,
    TensorType,
    feop,
    registry,
    simple_op,
)
from mplang_core.ext import (
    OPTIONAL,
    AnyType,
    Attr,
    Caching,
    Capabilities,
    DamagedProcessError,
    DeviceRequirement,
    Effects,
    FeCapabilityError,
    FeConfigError,
    Location,
    OpDef,
    Operation,
    PrecisionWarning,
    TraceError,
    at,
    caller,
    flatten,
    unflatten,
    warn,
)
from mplang_spu import public_part
from mplang_spu.config import SpuConfig, config_of
from mplang_spu.costs.rule import costs_of_run
from mplang_spu.precision_losses import losses_of_run, losses_of_shares
from mplang_spu.ranges import ranges_of_reconstruct, ranges_of_run, ranges_of_shares
from mplang_spu.share_type import ShareType
from mplang_spu.target import Target

if TYPE_CHECKING:
    from mplang_spu.engine import Compiled
    from mplang_spu.lowering import BadConstant

# -- sharing


@simple_op(
    "spu.make_shares",
    effects=Effects.FRESH,
    interfaces=[RangeRule(ranges_of_shares), PrecisionRule(losses_of_shares), SplitRule()],
    reads=(),
    inputs=({"kind": "Tensor", "visibility": ("PRIVATE",)},),
    outputs=({"kind": "spu.share", "visibility": ("SECRET",)},),
)
def make_shares(x: TensorType, *, share: ShareType) -> tuple[ShareType, ...]:
    """Split a tensor into one share per party, at the party that holds it.

    Args:
        x: any tensor of bools, integers or floats.
        share: the type of the shares.

    Returns:
        A share per party, in the order of ranks.

    Example:
        >>> from mplang_core.ext import Operand
        >>> x = TensorType("f32", (3,))
        >>> share = ShareType.of(x, SpuConfig(protocol="CHEETAH", parties=(0, 1)))
        >>> program = make_shares(Operand(x), share=share)  # mp.seal does it on a device
        >>> len(program.pfunc.outs_info)
        2
    """
    if share.plain != x:
        raise TypeError(f"expected shares of {x}, got {share}")
    return (share,) * len(share.parties)


def _infer_reconstruct(op: Operation, world: Mask) -> Sequence[AnyType]:
    types = [value.type for value in op.inputs]
    first = types[0] if types else None
    if not isinstance(first, ShareType) or any(kind != first for kind in types):
        raise TypeError(f"expected shares of one type, got ({_list(types)})")
    if len(types) != len(first.parties):
        raise TypeError(f"expected a share of each of {first.parties}, got {len(types)}")
    return [first.plain]


def _changes_of_reconstruct(op: Operation) -> Changes:
    """Return that each member may have sent another share, or made it otherwise.

    All protocols are secure against semi-honest members only.
    """
    share = op.inputs[0].type
    assert isinstance(share, ShareType)
    return Changes(share.parties, share.protocol)


RECONSTRUCT = OpDef(
    "spu.reconstruct",
    _infer_reconstruct,
    doc="Puts the shares of all parties together; who runs it learns the tensor.",
    effects=Effects.NONE,
    interfaces=[RangeRule(ranges_of_reconstruct), ChangeRule(_changes_of_reconstruct)],
    reads=(),
    total=True,
)


@feop(
    name="spu.reconstruct",
    dialects=("spu",),
    inputs=({"kind": "spu.share", "visibility": ("SECRET",)},),
    outputs=({"kind": "Tensor", "visibility": ("PRIVATE",)},),
)
def reconstruct(*shares: Any) -> FeProgram:
    """Reconstruct a tensor from all shares, at the party that is to learn it.

    Args:
        *shares: one share per party, in the order of ranks.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.reveal(mp.seal([1, 2]), to="P1")  # moves the shares, reconstructs there
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([1, 2])
    """
    types = tuple(share.base_type for share in shares)
    plain = [kind.plain for kind in types if isinstance(kind, ShareType)][:1]
    pfunc = PFunction("spu.reconstruct", types, tuple(plain))
    return FeProgram(pfunc, flatten(shares)[1], flatten(0)[1], shares)


# -- computing


def _infer_run_jax(op: Operation, world: Mask) -> Sequence[AnyType]:
    config = config_of(op)
    like = ShareType.of(TensorType("f32"), config)
    plain = [_plain(value.type, like, i) for i, value in enumerate(op.inputs)]
    public = public_part.results_of(op.attrs.get("public"), [each.type for each in op.inputs])
    outs = public_part.plain_outputs([*plain, *public], op.attrs["program"])
    return [_share(kind, like) for kind in outs]


def _plain(kind: AnyType, like: ShareType, i: int) -> TensorType:
    if isinstance(kind, TensorType):
        return kind  # public: the same at all parties
    if not isinstance(kind, ShareType):
        raise TypeError(f"operand {i} is neither a share nor a public tensor: {kind}")
    if _share(kind.plain, like) != kind:
        raise TypeError(f"operand {i} is {kind}, shared in another way than {like}")
    return kind.plain


def _share(plain: AnyType, like: ShareType) -> ShareType:
    assert isinstance(plain, TensorType)
    return ShareType(plain, like.parties, like.protocol, like.field, like.fxp)


def _constants_of_run(op: Operation) -> Sequence[Constant]:
    return [each for code in _codes(op) for each in constants_of_code(code)]


def _codes(op: Operation) -> Sequence[bytes]:
    """Return the code for libspu, then that of the public part."""
    public = op.attrs.get("public")
    programs = [op.attrs["program"], *([] if public is None else [public["program"]])]
    return [program["code"] for program in programs]


def _side_channels_of_run(op: Operation) -> SideChannels:
    """Return what a run tells beside its results.

    Loops and branches depend on public operands only, which may be private data all the same: what
    was revealed, or differs from member to member. The messages of libspu do not depend on data.
    """
    deciding = _deciding(op)
    return SideChannels(duration=[i for i in _operands(op, TensorType) if i in deciding])


def _operands(op: Operation, kind: type[BaseType]) -> Sequence[int]:
    return [i for i, value in enumerate(op.inputs) if isinstance(value.type, kind)]


def _deciding(op: Operation) -> Sequence[int]:
    """Return the operands upon which loops and branches depend."""
    from mplang_stablehlo.ext import deciding_operands

    count, public = len(op.inputs), op.attrs.get("public")
    takes = () if public is None else public["takes"]
    try:
        rest, *computing = map(deciding_operands, _codes(op))
    except ValueError:  # nobody runs it
        return range(count)
    if any(i >= count for i in rest):  # a result of the public part
        return sorted({*rest, *takes} & {*range(count)})
    return sorted({*rest, *(takes[i] for each in computing for i in each)})


RUN_JAX = OpDef(
    "spu.run_jax",
    _infer_run_jax,
    attrs={
        "program": Attr(dict, doc="attributes of jax.run: the StableHLO, and how it was made"),
        "parties": Attr(Mask, doc="who runs it together"),
        "config": Attr(dict, doc="protocol, field, precision"),
        "public": Attr(
            dict,
            OPTIONAL,
            doc="a program of jax.run that each member runs before, and the numbers of the public "
            "operands that it takes; its results are operands of the StableHLO, after all others",
        ),
    },
    doc="Runs StableHLO on shares and public tensors; all parties together, none learns more.",
    effects=Effects.FRESH,
    interfaces=[
        RangeRule(ranges_of_run),
        PrecisionRule(losses_of_run),
        ConstantsRule(_constants_of_run),
        SideChannelRule(_side_channels_of_run),
        CostRule(costs_of_run),
    ],
    reads=(),
    total=True,
)


@feop(
    name="spu.run_jax",
    op_kind="compiler",
    dialects=("stablehlo", "pphlo"),
    execution_model="multi_party",
    inputs=({"kind": "spu.share"}, {"kind": "Tensor", "visibility": ("PUBLIC",)}),
    outputs=({"kind": "spu.share", "visibility": ("SECRET",)},),
    config_schema=SpuConfig,
    targets=("share",),
    understands=lambda fn, types: None,
    state_scope="process",
    capabilities=Capabilities(
        requires_device=DeviceRequirement(members=">=2"),
        supports_visibility=("SECRET", "PUBLIC"),
        caching=Caching(scope="process"),
    ),
)
def run_jax(
    fn: Callable[..., Any], signature: FeSignature, *, config: SpuConfig | None = None
) -> FeProgram:
    """Compile a function of arrays for secret shares.

    ``jax.compile`` of the registry translates it to StableHLO. SPU's own compiler is tried on the
    result at once, so unsupported ops are refused here. A function is compiled once per signature
    and configuration, and again after something that it reads has changed.

    Args:
        fn: a function that JAX can trace, using ops that SPU supports.
        signature: its arguments; a :class:`ShareType` stands for a secret array, a
            :class:`TensorType` for one that all parties know.
        config: of the device, with its parties; the device passes it.

    Returns:
        A program of the op ``spu.run_jax``; its results are shares.

    Raises:
        TraceError: JAX or SPU cannot take the function.
        FeConfigError: the configuration is missing, or names no parties.

    Example:
        >>> config = SpuConfig(protocol="CHEETAH", parties=(0, 1))
        >>> share = ShareType.of(TensorType("f32", (3,)), config)
        >>> program = run_jax(lambda x: x.sum(), FeSignature((share,)), config=config)
        >>> print(program.pfunc.fn_type, *program.pfunc.outs_info)
        spu.run_jax spu.share<f32[], {0, 1}, "CHEETAH", "FM128", 40>
    """
    if config is None:
        raise FeConfigError("spu.run_jax needs a configuration; a device of kind SPU gives it")
    if not config.parties:
        raise FeConfigError("SpuConfig: field 'parties' is empty; a device fills it in")
    from mplang_stablehlo.ext import is_fixed, jax_settings

    leaves, spec = flatten(signature.args)
    jax_compile, made_now = registry.get("jax.compile"), []

    def make(types: Sequence[BaseType]) -> FeProgram:
        given = iter(types)
        made_now.append(True)
        plain = [next(given) if isinstance(leaf, BaseType) else leaf for leaf in leaves]
        return jax_compile(fn, FeSignature(tuple(unflatten(spec, plain)), signature.kwargs))

    program = compiled_once(
        run_jax,
        fn,
        signature,
        lambda: _lower(make, signature.operands, config),
        depends_on=(config, jax_settings()),
        is_fixed=is_fixed,
    )
    for file, line, text in () if made_now else program.meta.get("precision", ()):
        warn(text, PrecisionWarning, Location(file, line))  # as jax.compile did at first
    return _told(program)


def lower(
    make: Callable[[Sequence[BaseType]], FeProgram], types: Sequence[BaseType], config: SpuConfig
) -> FeProgram:
    """Compile a StableHLO program on plain operands to one on shares.

    Args:
        make: returns the plain program for operand types.
        types: of the operands; a :class:`ShareType` is secret.
        config: of the device, with its parties.

    Returns:
        A program of the op ``spu.run_jax``.

    Raises:
        FeCapabilityError: ``make`` returns another op than ``jax.run``.
        TraceError: SPU cannot compile it.
    """
    return _told(_lower(make, types, config))


def _lower(
    make: Callable[[Sequence[BaseType]], FeProgram], types: Sequence[BaseType], config: SpuConfig
) -> FeProgram:
    from mplang_spu import engine

    target = Target.of(config.attrs())
    with engine.spu_tracing(target):
        made = make([kind.plain if isinstance(kind, ShareType) else kind for kind in types])
    if made.pfunc.fn_type != "jax.run":
        raise FeCapabilityError(
            f"{at()}an SPU compiles StableHLO, as jax.compile makes it; got {made.pfunc.fn_type}"
        )
    operands = tuple(value.base_type for value in made.inputs) or tuple(types)
    secret = [isinstance(kind, ShareType) for kind in operands]
    with engine.spu_tracing(target):
        made, public, computed = public_part.take_out(made, secret)
    known = [False] * (len(made.consts) + len(computed))
    compiled = _compile(made, (*secret, *known), config)
    outs: tuple[Any, ...] = made.pfunc.outs_info
    attrs = {"program": dict(made.pfunc.attrs), "parties": config.mask, "config": config.attrs()}
    pfunc = PFunction(
        "spu.run_jax",
        (*operands, *(TensorType.of(const) for const in made.consts)),
        tuple(ShareType.of(kind, config) for kind in outs),
        attrs if public is None else {**attrs, "public": public},
    )
    drawn = range(len(secret) + len(made.consts), len(secret) + len(known))
    told = [each for each in compiled.diagnostics if each.chosen_of not in drawn]
    meta = {**made.meta, "diagnostics": told}  # a draw is tried before a run: its numbers are known
    return FeProgram(pfunc, made.in_tree, made.out_tree, made.inputs, made.consts, meta)


def _compile(made: FeProgram, secret: tuple[bool, ...], config: SpuConfig) -> Compiled:
    from mplang_stablehlo.ext import OpRefusedError, secret_loop

    from mplang_spu import engine
    from mplang_spu.compiler import stderr_in_errors

    code = made.pfunc.attrs["code"]
    try:
        with stderr_in_errors():
            return engine.compile_code(code, secret, Target.of(config.attrs()))
    except OpRefusedError as error:
        raise TraceError(
            f"{_line_of(code, error.index)}SPU cannot compile this: {error}", code="T019"
        ) from None
    except engine.SecretLoopError as error:
        loop = secret_loop(code, secret)
        line = at() if loop is None else _line_of(code, loop)
        raise TraceError(f"{line}SPU cannot compile this: {error}", code="T019") from None
    except (ValueError, DamagedProcessError) as error:
        raise TraceError(f"{at()}SPU cannot compile this: {error}", code="T019") from error


def _line_of(code: bytes, index: int) -> str:
    """Return the line of an op as the prefix of a message; that of the call if it is unknown."""
    from mplang_stablehlo import read
    from mplang_stablehlo.ext import line_at, parse

    line = line_at(parse(read(code)), code, index, caller())
    return f"{line}: " if line else at()


def _told(program: FeProgram) -> FeProgram:
    """Return a program, and tell of constants in it that the fixed point cannot represent."""
    for diagnostic in program.meta["diagnostics"]:
        _tell(diagnostic, program.pfunc.attrs["program"]["code"])
    return program


def _tell(diagnostic: BadConstant, code: bytes) -> None:
    from mplang_spu.reference_check.flat_function import source_lines

    place = caller()
    line = source_lines(code, place)[diagnostic.op_index] or place or Location("<mplang>", 1)
    if diagnostic.fatal:
        raise TraceError(f"{line}: {diagnostic.text}", code="T019")
    warn(diagnostic.text, PrecisionWarning, line)


def _list(types: Sequence[object]) -> str:
    return ", ".join(map(str, types))
