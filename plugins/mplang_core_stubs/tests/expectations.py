"""What type checkers say: ``# is TYPE`` of an expression, ``# error: TEXT`` of a mistake."""

# ruff: noqa: B018, F821

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import mplang_core as mp
from mplang_core.ext import SimpHost

cluster = mp.ClusterSpec.simple(2)
sim = mp.Simulator(cluster, mode="launch")
array = np.array([1.0, 2.0])
rows = [[1, 2], [3, 4]]
x = mp.put("P0", array)
host: SimpHost = mp.connect("http", cluster)


@dataclass
class State:
    weights: mp.MPObject


def double(x: mp.MPObject) -> mp.MPObject:
    return x + x


def both() -> dict[str, mp.MPObject]:
    return {"x": mp.reveal(x)}


reveal_type(mp.Simulator)  # is def (cluster_spec: ClusterSpec, *, timeout: float
reveal_type(mp.Http)  # is def (
reveal_type(mp.dataset)  # is def (party: str, name: str
reveal_type(mp.sql)  # is def (str, str
reveal_type(mp.store)  # is def (x: Any, name: str)
reveal_type(mp.guard.aggregate)  # is def (
reveal_type(mp.dp.mean)  # is def (
reveal_type(mp.analysis.disclosure)  # is def (
reveal_type(mp.record)  # is def (host:
reveal_type(mp.parse(""))  # is Program
reveal_type(mp.dataset("bank", "people"))  # is MPObject
reveal_type(mp.sql("bank", "FROM {t}", t=x))  # is MPObject
reveal_type(x)  # is MPObject
reveal_type(mp.put("P0", 7))  # is MPObject
reveal_type(mp.put("P0", [1.0, 2.0]))  # is MPObject
reveal_type(mp.put("P0", rows))  # is MPObject
reveal_type(mp.put("P0", {"a": array}))  # is dict[str, MPObject]
reveal_type(mp.put("P0", (array, 1)))  # is tuple[MPObject, ...]
reveal_type(mp.put("P0", State(x)))  # is State
reveal_type(mp.put("P0", jnp.ones(2)))  # is MPObject
reveal_type(mp.seal(x))  # is MPObject
reveal_type(mp.seal(array))  # is MPObject
reveal_type(mp.seal([x, x]))  # is list[MPObject]
reveal_type(mp.reveal((x, State(x))))  # is tuple[MPObject, State]
reveal_type(mp.reveal(both()))  # is dict[str, MPObject]
reveal_type(mp.keep(x))  # is MPObject
reveal_type(mp.device("P0")(lambda x: x + 1)(x))  # is MPObject
reveal_type(mp.device("P0")(np.mean))  # is def (*Any, **Any) -> MPObject
with mp.Simulator(cluster) as one, mp.with_ctx(one):
    reveal_type(one)  # is Simulator
a, b = mp.device("P0")(lambda x: (x, x))(x)
reveal_type(a)  # is MPObject
reveal_type(x["w"])  # is MPObject
reveal_type(1 - x)  # is MPObject
reveal_type(x < 3)  # is MPObject
reveal_type(-x @ x)  # is MPObject
reveal_type(x.shape)  # is tuple[int, ...]
reveal_type(x.mptype)  # is MPType
reveal_type(mp.seal((array, 1)))  # is tuple[MPObject, ...]
reveal_type(mp.compile(double, x, cluster_spec=sim.cluster_spec))  # is CompiledFunction[MPObject]
reveal_type(mp.compile(double, x).program)  # is Program
reveal_type(mp.evaluate(sim, double, 3))  # is MPObject
reveal_type(mp.evaluate(host, mp.compile(both)))  # is dict[str, MPObject]
reveal_type(mp.fetch(sim, both()))  # is dict[str, Any]
reveal_type(mp.fetch(sim, (x, x)))  # is tuple[Any, ...]
reveal_type(mp.simp.pcall_static(0, abs, x))  # is MPObject
reveal_type(mp.fetch(sim, x))  # is Any
mp.simulatr  # error: Module has no attribute "simulatr"
mp.guard.agregate  # error: Module has no attribute "agregate"
x.shpae  # error: "MPObject" has no attribute "shpae"
mp.put(0, x)  # error: No overload variant of "put" matches
mp.Simulator(3)  # error: Argument 1 to "Simulator" has incompatible type "int"
