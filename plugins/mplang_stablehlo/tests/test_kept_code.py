"""XLA's executables that another process has compiled."""

import json
import subprocess
import sys

import jax
import mplang_cache
import numpy as np
import pytest
from mplang_stablehlo import kept_code
from mplang_stablehlo.ext import compile_for_xla

from mplang_core import TensorType

X = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
FUNCTIONS = {
    "elementwise": lambda x: x * 2 + jax.numpy.sin(x),
    "product": lambda x: x @ x.T,
    "sort": lambda x: jax.numpy.sort(x, 0),
    "top": lambda x: jax.lax.top_k(x, 2),
    "loop": lambda x: jax.lax.fori_loop(0, 5, lambda i, y: y * x, x),
    "decision": lambda x: jax.lax.cond(x[0, 0] > 1, lambda y: y + 1, lambda y: y - 1, x),
    "random": lambda x: x + jax.random.normal(jax.random.key(1), x.shape),
    "integers": lambda x: (x * 100).astype("int32") // 7,
    "fourier": lambda x: jax.numpy.abs(jax.numpy.fft.fft(x)),
    "constants": lambda x: x + jax.numpy.arange(12, dtype=x.dtype).reshape(3, 4) ** 3,
    "scatter": lambda x: x.at[jax.numpy.array([0, 2])].add(1.0),
    "nothing": lambda x: x,
}


class Kept(dict):
    """Cache in memory, with the reasons for which something was dropped."""

    def __init__(self):
        super().__init__()
        self.why = []

    def put(self, key, code):
        self[key] = code

    def drop(self, key, why):
        self.pop(key, None)
        self.why.append(why)


@pytest.fixture
def kept():
    """Return the cache of compiled code of this process, for one test."""
    made = Kept()
    mplang_cache.use_code_cache(made)
    yield made
    mplang_cache.use_code_cache(None)


def compiled(fn, *args):
    lowered = jax.jit(fn).lower(*args)
    outs = jax.tree.leaves(jax.eval_shape(fn, *args))
    gives = [TensorType(str(each.dtype), each.shape) for each in outs]
    takes = [TensorType(str(each.dtype), each.shape) for each in args]
    return compile_for_xla(lowered.as_text(), takes, gives)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_loaded_gives_the_same_bits(name, kept, monkeypatch):
    fn = FUNCTIONS[name]
    alone = compiled(fn, X)(X)
    assert len(kept) == 1
    monkeypatch.setattr(kept_code, "_compile", None)  # nothing is compiled any more
    again = compiled(fn, X)(X)
    mplang_cache.use_code_cache(None)
    monkeypatch.undo()
    for each, other, plain in zip(alone, again, compiled(fn, X)(X), strict=True):
        assert np.asarray(each).tobytes() == np.asarray(other).tobytes()
        assert np.asarray(each).tobytes() == np.asarray(plain).tobytes()


def test_what_xla_does_not_load_is_dropped_and_compiled(kept):
    fn = FUNCTIONS["elementwise"]
    want = compiled(fn, X)(X)
    (key,) = kept
    mplang_cache.keep_code(key, b"no executable")
    (got,) = compiled(fn, X)(X)
    assert np.array_equal(got, want[0])
    assert len(kept.why) == 1
    assert kept.why[0].startswith("XLA does not load it")
    kept[key] = b"nothing that was compressed"
    assert np.array_equal(compiled(fn, X)(X)[0], want[0])
    assert kept.why[1:] == ["it is not compressed code"]


def other_jax(monkeypatch):
    monkeypatch.setattr(jax, "__version__", "0.8.99")


def other_jaxlib(monkeypatch):
    monkeypatch.setattr(kept_code.jaxlib_version, "__version__", "0.8.99")


def other_machine(monkeypatch):
    monkeypatch.setattr(kept_code, "_MACHINE", kept_code._MACHINE.replace(" ", " avx9 "))


def other_flags(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")


@pytest.mark.parametrize("change", [other_jax, other_jaxlib, other_machine, other_flags])
def test_versions_machine_and_options_are_part_of_the_key(change, kept, monkeypatch):
    fn = FUNCTIONS["elementwise"]
    compiled(fn, X)
    change(monkeypatch)
    compiled(fn, X)
    assert len(kept) == 2


def test_floats_of_another_width_have_another_key(kept):
    fn = FUNCTIONS["elementwise"]
    compiled(fn, X)
    with jax.enable_x64(True):
        compiled(fn, X.astype(np.float64))
    assert len(kept) == 2


def test_where_the_machine_is_not_known_nothing_is_kept(kept, monkeypatch):
    monkeypatch.setattr(kept_code, "_MACHINE", "")
    compiled(FUNCTIONS["elementwise"], X)
    assert not kept


def test_what_jax_compiles_for_others_is_not_kept(kept):
    jax.jit(lambda x: x * 2 + 7)(X)
    assert not kept


PROGRAM = """
import json, sys
import mplang_core as mp
import numpy as np
from jax._src import compiler
from mplang_stablehlo import kept_code

compiled, compile_ = [], kept_code._compile
def counted(*args):
    compiled.append(args)
    return compile_(*args)

kept_code._compile = counted
x = np.linspace(0.1, 2, 30, dtype=np.float32)
out = []
for mode in ("standard", "launch"):
    with mp.Simulator(mp.ClusterSpec.simple(3), mode=mode) as sim:
        def program(x):
            y = mp.device("P0")(lambda v: v * 7 + 1)(mp.put("P0", x))
            s = mp.device("SP0")(lambda v: v * v)(mp.put("SP0", y))
            return mp.put("P1", y), mp.reveal(s, to="P2")
        values = [np.asarray(mp.fetch(sim, v)) for v in mp.evaluate(sim, program, x)]
        out += [v.tobytes().hex() for v in values[:1]]
print(json.dumps([out, len(compiled)]))
"""


@pytest.mark.needs("jax", "spu")
def test_the_next_simulator_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MPLANG_COMPILED_CODE", "")
    runs = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert "dropped" not in run.stderr
        runs.append(json.loads(run.stdout))
    (first, compiled_first), (second, compiled_second) = runs
    assert first == second
    assert compiled_first > 0
    assert compiled_second == 0
    folder = tmp_path / "cache" / "mplang" / "compiled-code"
    assert len(list(folder.iterdir())) > compiled_first  # PPHLO, too
    assert (tmp_path / "state" / "mplang" / "code.key").is_file()
