"""Portable artifacts: those that are made in a shared context have the bytes of JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib import _jax
from mplang_stablehlo import module
from mplang_stablehlo.ext import STABLEHLO_VERSION, artifact

X = np.linspace(0.1, 0.9, 30, dtype=np.float32)
FUNCTIONS = {
    "elementwise": lambda x: jnp.arctan2(jnp.exp(x), x % 0.3),
    "constants": lambda x: x * 2 + 2 - 0 * x,
    "unused": lambda x: (jnp.sin(x), x * 1.0)[1],
    "loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * x + i, x),
    "scan": lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), x[0], x),
    "decision": lambda x: jax.lax.cond(x[0] > 0, lambda: x, lambda: 1 - x),
    "sort": lambda x: jnp.sort(x),
    "product": lambda x: x.reshape(5, 6) @ x.reshape(6, 5),
    "integers": lambda x: (x * 100).astype("int32") // 7,
    "fourier": lambda x: jnp.fft.fft(x),
    "softmax": lambda x: jax.nn.softmax(x),
    "scatter": lambda x: x.at[jnp.array([0, 2])].add(1.0),
}
EXPANDED = {  # by JAX's function, as is what has sharding rules
    "decomposition": lambda x: jnp.linalg.qr(x.reshape(5, 6)),
    "eigenvalues": lambda x: jnp.linalg.eigh(x.reshape(5, 6) @ x.reshape(6, 5)),
    "random": lambda x: x + jax.random.normal(jax.random.key(1), x.shape),
    "top": lambda x: jax.lax.top_k(x, 3),
    "tangent": lambda x: jnp.tan(x) + jnp.sinh(x),
    "error function": lambda x: jax.scipy.special.erf(x),
}


@pytest.mark.parametrize("name", [*FUNCTIONS, *EXPANDED])
def test_an_artifact_has_the_bytes_of_jaxs_own(name, monkeypatch):
    lowered = jax.jit({**FUNCTIONS, **EXPANDED}[name]).lower(X)
    for text in (lowered.as_text(debug_info=True), lowered.as_text()):
        expected = _jax.mlir.serialize_portable_artifact(text, STABLEHLO_VERSION, True)
        if name in FUNCTIONS:
            monkeypatch.setattr(module, "_jax", None)  # it is not asked
        assert artifact(text) == expected
        monkeypatch.undo()


def test_what_is_no_program_is_told_as_by_jax():
    with pytest.raises(jax.errors.JaxRuntimeError, match="'nothing' is unknown"):
        artifact("module @main { nothing }")
