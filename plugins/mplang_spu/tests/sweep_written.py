"""Calls of JAX's functions by hand, for the sweep, and the functions that it does not call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy
from jax import lax

Call = Callable[..., Any]

EXCLUDED = frozenset([
    "save", "savez", "load", "fromfile", "frombuffer", "fromiter", "fromstring", "from_dlpack",
    "fromfunction", "frompyfunc", "set_printoptions", "get_printoptions", "printoptions",
    "array_repr", "array_str", "einsum_path", "create_token", "after_all", "minimize",
    "with_sharding_constraint",
])  # fmt: skip
"""Functions of files, of printing, and of others' functions."""

NOT_CALLED: dict[str, str] = {
    "takes no array": """
        jnp.arange jnp.bartlett jnp.blackman jnp.broadcast_shapes jnp.diag_indices jnp.empty jnp.eye
        jnp.hamming jnp.hanning jnp.identity jnp.indices jnp.isdtype jnp.issubdtype
        jnp.mask_indices jnp.ones jnp.promote_types jnp.tri jnp.tril_indices jnp.triu_indices
        jnp.zeros lax.broadcast_shapes lax.conv_dimension_numbers lax.conv_general_permutations
        lax.conv_general_shape_tuple lax.conv_shape_tuple lax.conv_transpose_shape_tuple lax.empty
        lax.iota lax.padtype_to_pads lax.reduce_window_shape_tuple
        nn.get_scaled_dot_general_config random.PRNGKey random.key scipy.linalg.hilbert
        scipy.linalg.pascal scipy.special.bernoulli
    """,
    "returns no array": """
        jnp.isscalar jnp.ndim jnp.result_type jnp.shape jnp.size lax.axis_size lax.dce_sink
        lax.dtype random.key_impl
    """,
    "needs several devices, and JAX does not batch it": """
        lax.all_gather_invariant lax.precv lax.psend lax.ragged_all_to_all
    """,
    "returns a shape that depends on numbers, and JAX does not trace it": "jnp.trim_zeros",
}
"""Functions that are not called, by the reason: a closed list."""

TAILS: list[tuple[Any, ...]] = [
    (0,), (1,), (2,), (-1,), (3,), (8,), (0, 1), (1, 2), ((0,),), ((-1,),), ((8,),), (1, 0, 0),
    (0.5,), (0.0, 1.0), ("int32",), (0, 1, 1), ((4, 2),), ((0,), (1,)), ((0,), (2,), (1,)),
]  # fmt: skip
"""Static arguments after the arrays, tried in this order."""

CASTS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "float32")

WRITTEN: dict[str, Call] = {
    "jnp.clip": lambda f, x: f(x, 0, 2),
    "jnp.einsum": lambda f, x, y: f("...,...->...", x, y),
    "jnp.apply_along_axis": lambda f, x: f(lambda v: v.sum(), 0, x),
    "jnp.apply_over_axes": lambda f, x: f(jnp.sum, x, [0]),
    "jnp.piecewise": lambda f, x: f(x, [x < 1, x >= 1], [lambda v: v + 1, lambda v: v * 2]),
    "jnp.select": lambda f, x, y: f([x > 1, y > 1], [x, y], 0),
    "jnp.bincount": lambda f, x: f(x.astype("int32"), length=8),
    "jnp.choose": lambda f, x, y: f((x > y).astype("int32"), [x, y], mode="clip"),
    "jnp.fill_diagonal": lambda f, x: f(x, 1, inplace=False),
    "jnp.place": lambda f, x, y: f(x, x > y, y, inplace=False),
    "jnp.put": lambda f, x: f(x, 0, 1, inplace=False),
    "jnp.vectorize": lambda f, x: f(lambda v: v + 1)(x),
    "jnp.histogram": lambda f, x: f(x, bins=3, range=(0, 3)),
    "jnp.interp": lambda f, x, y: f(x, jnp.arange(8.0), y),
    "jnp.pad": lambda f, x: f(x, 1),
    "jnp.percentile": lambda f, x: f(x, 50),
    "jnp.nanpercentile": lambda f, x: f(x, 50),
    "jnp.quantile": lambda f, x: f(x, 0.5),
    "jnp.nanquantile": lambda f, x: f(x, 0.5),
    "jnp.insert": lambda f, x: f(x, 1, 2),
    "jnp.searchsorted": lambda f, x, y: f(jnp.sort(x), y),
    "jnp.digitize": lambda f, x: f(x, jnp.arange(3)),
    "lax.argmax": lambda f, x: f(x, 0, "int32"),
    "lax.argmin": lambda f, x: f(x, 0, "int32"),
    "lax.associative_scan": lambda f, x: f(jnp.add, x),
    "lax.cond": lambda f, x: f(x.sum() > 3, lambda v: v + 1, lambda v: v * 2, x),
    "lax.switch": lambda f, x: f((x.sum() > 3).astype("int32"), [lambda v: v + 1, jnp.negative], x),
    "lax.fori_loop": lambda f, x: f(0, 3, lambda i, v: v + x, x),
    "lax.while_loop": lambda f, x: f(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, x)),
    "lax.scan": lambda f, x: f(lambda s, v: (s + v, s), jnp.zeros_like(x[0]), x),
    "lax.map": lambda f, x: f(lambda v: v + v, x),
    "lax.reduce": lambda f, x: f(x, jnp.zeros((), x.dtype), lax.add, (0,)),
    "lax.reduce_window": lambda f, x: f(x, jnp.zeros((), x.dtype), lax.add, (2,), (1,), "SAME"),
    "lax.squeeze": lambda f, x: f(x[None], (0,)),
    "lax.conv": lambda f, x, y: f(x[None, None], y[None, None], (1,), "SAME"),
    "lax.pad": lambda f, x: f(x, jnp.zeros((), x.dtype), [(1, 1, 0)] * x.ndim),
    "lax.select": lambda f, x, y: f(x > y, x, y),
    "lax.select_n": lambda f, x, y: f(x > y, x, y),
    "lax.clamp": lambda f, x, y: f(jnp.zeros_like(x), x, y),
    "lax.sort": lambda f, x, y: f((x, y), num_keys=1),
    "lax.reduce_precision": lambda f, x: f(x, 5, 10),
    "lax.dot_general": lambda f, x, y: f(x, y, (((0,), (0,)), ((), ()))),
    "lax.broadcasted_iota": lambda f, x: f(x.dtype, x.shape, 0) + x,
    "lax.dynamic_slice": lambda f, x: f(x, (1,) * x.ndim, (2,) * x.ndim),
    "lax.dynamic_update_slice": lambda f, x: f(x, x[:1], (1,) * x.ndim),
    "lax.composite": lambda f, x: f(lambda v: v + 1, "own.name")(x),
    "lax.platform_dependent": lambda f, x: f(x, cpu=jnp.sin, default=jnp.sin),
    "nn.dot_product_attention": lambda f, x, y: f(
        *(jnp.broadcast_to(v.reshape(-1)[:8].reshape(1, 4, 1, 2), (1, 4, 1, 2)) for v in (x, y, x))
    ),
    "jnp.dsplit": lambda f, x: f(x[None, None], 1),
    "jnp.full": lambda f, x: f((3,), x.sum()),
    "jnp.kaiser": lambda f, x: f(4, x.sum()),
    "jnp.ravel_multi_index": lambda f, x, y: f((_bits(x), _bits(y)), (2, 2), mode="clip"),
    "jnp.unpackbits": lambda f, x: f(x.astype("uint8")),
    "lax.broadcast_in_dim": lambda f, x: f(x, (2, *x.shape), tuple(range(1, x.ndim + 1))),
    "lax.conv_general_dilated": lambda f, x, y: f(*_images(x, y), _ones(x), "SAME"),
    "lax.conv_general_dilated_local": lambda f, x, y: f(
        *_images(x, y), _ones(x), "VALID", _ones(x)
    ),
    "lax.conv_general_dilated_patches": lambda f, x: f(x[None, None], _ones(x), _ones(x), "SAME"),
    "lax.conv_transpose": lambda f, x, y: f(
        x.reshape(1, -1, 1), y.reshape(-1, 1, 1), (1,), "SAME"
    ),
    "lax.conv_with_general_padding": lambda f, x, y: f(
        *_images(x, y), _ones(x), "SAME", None, None
    ),
    "lax.custom_linear_solve": lambda f, x: f(
        lambda v: 2 * v, x, lambda _, v: v / 2, symmetric=True
    ),
    "lax.custom_root": lambda f, x: f(
        lambda v: 2 * v - x, x, lambda *_: x / 2, lambda g, v: v / g(jnp.ones_like(v))
    ),
    "lax.fft": lambda f, x: f(x.astype("complex64"), "FFT", x.shape[-1:]),
    "lax.full": lambda f, x: f((3,), x.sum()),
    "lax.gather": lambda f, x, y: f(_line(x), _bits(y).reshape(-1, 1), _TAKEN, (1,)),
    "lax.index_take": lambda f, x, y: f(_line(x), (_line(_bits(y)),), (0,)),
    "lax.real": lambda f, x: f(lax.complex(x, x)),
    "lax.imag": lambda f, x: f(lax.complex(x, x)),
    "lax.ragged_dot": lambda f, x, y: f(*_groups(x, y)),
    "lax.ragged_dot_general": lambda f, x, y: f(
        *_groups(x, y), lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    ),
    **{
        f"lax.scatter{how}": lambda f, x, y: f(_line(x), _order(y), _line(y), _PUT)
        for how in ("", "_add", "_max", "_min", "_mul", "_sub")
    },
    "lax.scatter_apply": lambda f, x, y: f(
        _line(x), _order(y), lambda v: v + v, _PUT, update_shape=(x.size,)
    ),
    "lax.all_gather": lambda f, x: _on_axis(lambda v: f(v, "i"), x),
    "lax.all_to_all": lambda f, x: _on_axis(lambda v: f(v, "i", 0, 0), _square(x)),
    "lax.axis_index": lambda f, x: _on_axis(lambda v: f("i") + v, x),
    "lax.pmean": lambda f, x: _on_axis(lambda v: f(v, "i"), x),
    "lax.ppermute": lambda f, x: _on_axis(lambda v: f(v, "i", [(0, 1), (1, 0)]), _line(x)[:2]),
    "lax.pshuffle": lambda f, x: _on_axis(lambda v: f(v, "i", [1, 0]), _line(x)[:2]),
    "lax.psum_scatter": lambda f, x: _on_axis(lambda v: f(v, "i"), _square(x)),
    "lax.pswapaxes": lambda f, x: _on_axis(lambda v: f(v, "i", 0), _square(x)),
    "nn.scaled_dot_general": lambda f, x, y: f(x, y, (((0,), (0,)), ((), ()))),
    "nn.scaled_matmul": lambda f, x, y: f(
        *(v.reshape(-1)[:8].reshape(1, 4, 2) for v in (x, y)), *[jnp.ones((1, 4, 1), x.dtype)] * 2
    ),
    "random.ball": lambda f, x: (f(key(), 3), x),
    "random.multinomial": lambda f, x: f(key(), 10, jax.nn.softmax(x)),
    "random.orthogonal": lambda f, x: (f(key(), 3), x),
    "scipy.linalg.cho_solve": lambda f, x, y: f((jnp.tril(x) + 4 * jnp.eye(len(x)), True), y),
    "scipy.linalg.eigh_tridiagonal": lambda f, x, y: f(x, y[1:], eigvals_only=True),
    **{
        f"{module}.svd": lambda f, x: _whole(*f(x, full_matrices=False))
        for module in ("linalg", "scipy.linalg")
    },
    **{
        f"{module}.eigh": lambda f, x: _whole((made := f(x + x.T))[1], made[0], made[1].T)
        for module in ("linalg", "scipy.linalg")
    },
    **{
        f"{module}.qr": lambda f, x: _whole((made := f(x))[0], jnp.ones(len(x)), made[1])
        for module in ("linalg", "scipy.linalg")
    },
    "scipy.linalg.funm": lambda f, x: f(x, jnp.exp),
    "scipy.linalg.lu_solve": lambda f, x, y: f(jax.scipy.linalg.lu_factor(x), y),
    "scipy.ndimage.map_coordinates": lambda f, x, y: f(_line(x), [_line(y)], 1),
    "scipy.special.bessel_jn": lambda f, x: f(x, v=2),
    "scipy.special.sph_harm_y": lambda f, x, y: f(
        jnp.array([2]), jnp.array([1]), _line(x), _line(y), n_max=2
    ),
    "random.randint": lambda f, x: (f(key(), (8,), 0, 100), x),
    "random.multivariate_normal": lambda f, x: f(key(), x, jnp.eye(x.size)),
    **{
        f"jnp.astype({to})": lambda f, x, to=to: f(x, to) for to in CASTS
    },
}  # fmt: skip


_TAKEN = lax.GatherDimensionNumbers((), (0,), (0,))
_PUT = lax.ScatterDimensionNumbers((), (0,), (0,))


def key() -> Any:
    """Return a public key."""
    return jax.random.PRNGKey(7)


def _line(x: Any) -> Any:
    return x.reshape(-1)


def _bits(x: Any) -> Any:
    return (x > 1).astype("int32")


def _whole(u: Any, values: Any, vt: Any) -> tuple[Any, Any]:
    """Return values and the matrix that was decomposed; the vectors' signs are anybody's."""
    return values, (u * values) @ vt


def _ones(x: Any) -> tuple[int, ...]:
    return (1,) * x.ndim


def _images(*xs: Any) -> list[Any]:
    return [x[None, None] for x in xs]


def _order(x: Any) -> Any:
    """Return secret places of which none is twice."""
    return jnp.argsort(_line(x)).reshape(-1, 1)


def _square(x: Any) -> Any:
    return _line(x)[:4].reshape(2, 2)


def _groups(x: Any, y: Any) -> tuple[Any, ...]:
    return (
        _line(x)[:8].reshape(4, 2), _line(y)[:8].reshape(2, 2, 2), jnp.array([1, 3], "int32")
    )  # fmt: skip


def _on_axis(fn: Call, x: Any) -> Any:
    return jax.vmap(fn, axis_name="i")(x)
