"""Private data reaches no other party; a literal in a program is public to all of its parties."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from mplang_simulator import Simulator

import mplang_core as mp
from mplang_core.ir import to_bytes
from mplang_core.ir.compressed_text import unpack
from mplang_core.runtime import encode

A, B = 0x1234_5678_9ABC_DEF1, 0x0FED_CBA9_8765_4321  # of party 0, of party 1
CODE = 987_654_321  # compiled into what party 1 runs


class Eavesdropper(Simulator):
    """Writes down every byte that a party gets: programs, inputs, messages."""

    def __init__(self, cluster, **options):
        self.got = defaultdict(list)
        super().__init__(cluster, **options)

    def _start(self):
        parties = super()._start()
        for comm in parties._comms:
            comm.send = self._tapped(comm, comm.send)
        return parties

    def _tapped(self, comm, send):
        def tapped(to_rank, key, data):
            self.got[to_rank] += [key.encode(), *_bytes_of(data)]
            send(to_rank, key, data)

        return tapped

    def _submit(self, rank, run, program, inputs, parties):
        self.got[rank].append(to_bytes(program))
        mine = [each.values[rank] for each in inputs]
        self.got[rank] += [part for x in mine if x is not None for part in _bytes_of(x)]
        for op in program.graph.walk():
            for value in op.attrs.values():
                nested = value.values() if isinstance(value, dict) else [value]
                self.got[rank] += [_code(part) for part in nested if isinstance(part, bytes)]
        return super()._submit(rank, run, program, inputs, parties)

    def saw(self, rank, number):
        """Tell whether a party got a number, as eight bytes or as digits."""
        patterns = [number.to_bytes(8, "little"), number.to_bytes(8, "big"), str(number).encode()]
        return any(pattern in data for data in self.got[rank] for pattern in patterns)


def _code(data):
    try:
        return unpack(data).encode()
    except ValueError:
        return data


def _bytes_of(data):
    if isinstance(data, np.ndarray):
        return [bytes(part) for part in encode(mp.TensorType.of(data), data)[1]]
    if hasattr(data, "chunks"):
        return [bytes(chunk) for chunk in data.chunks]
    return [repr(data).encode()]


@mp.builtin_function
def inner(x):
    return x, mp.constant(np.int64(A), parties=[0])


def literals():
    """Literals at every depth: in regions, functions, and compiled code."""
    a, b = mp.put("P0", np.int64(A)), mp.constant(np.int64(B), parties=[1])
    c = mp.device("P1")(lambda y: y % CODE)(mp.put("P1", np.int64(5)))
    x, d = inner(mp.constant(1))
    e = mp.uniform_cond(
        mp.constant(True),
        lambda v: (v, mp.constant(np.int64(A), parties=[0])),
        lambda v: (v, mp.constant(np.int64(A + 0), parties=[0])),
        x,
    )
    f = mp.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, mp.put("P0", np.int64(A))), (x, a))
    shared = mp.pshfl_s(mp.constant(np.int64(7), parties=[1]), [0], [1])
    return a, b, c, d, e, f, shared


@pytest.mark.needs("jax")
def test_literals_of_a_program_reach_all_its_parties():
    """All parties get the program that each of them verifies, so nothing in it is private."""
    with Eavesdropper(mp.ClusterSpec.simple(3)) as sim:
        result = mp.evaluate(sim, literals, mode="launch")
        assert mp.fetch(sim, result[0]) == A
        for rank in range(3):
            for number in (A, B, CODE):
                assert sim.saw(rank, number), (rank, number)


@pytest.mark.needs("jax", "spu")
def test_data_that_is_put_outside_reaches_its_party_only(mode):
    """A literal is public to all parties of the program; this is the way for private data."""

    def program(x, shared):
        y = mp.device("P0")(lambda v: v + 1)(x)
        return y, mp.reveal(mp.device("SP0")(lambda v: v - A)(mp.seal(shared)), to="P1")

    with Eavesdropper(mp.ClusterSpec.simple(2)) as sim:
        with mp.with_ctx(sim):
            x, shared = mp.put("P0", np.int64(B)), mp.put("P0", np.int64([A, A]))
        y, z = mp.evaluate(sim, program, x, shared, mode=mode)
        assert mp.fetch(sim, y) == B + 1
        assert (mp.fetch(sim, z) == 0).all()
        assert sim.saw(0, B)
        assert not sim.saw(1, B)
        assert not sim.saw(1, B + 1)


def test_the_test_would_see_it(mode):
    """What is put at party 1 in plain does reach it, from party 0 or from the host."""
    with Eavesdropper(mp.ClusterSpec.simple(2)) as sim:
        mp.evaluate(sim, lambda: mp.put("P1", mp.put("P0", np.int64(A))), mode=mode)
        assert sim.saw(1, A)
        with mp.with_ctx(sim):
            x = mp.put("P1", np.int64(B))
        mp.evaluate(sim, lambda x: mp.put("P0", x), x, mode=mode)
        assert sim.saw(1, B)
