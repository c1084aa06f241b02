"""Tables and programs whose sentences and pictures are looked at."""

from __future__ import annotations

import functools
import random

import toy
from disclosure_rows import SCALAR, at, trace
from mplang_analysis import Disclosure, DisclosureRow

import mplang_core as mp
from mplang_core import analysis

HOSTILE = "x\x1b[31m learns nothing. <img src=x>\u202e"


def row(what="move", sender=0, receiver=1, payload="i64[]", form="plain", inputs=(0,), **more):
    """Return a row; by default all data in it is disclosed but the receiver's own."""
    discloses = tuple(rank for rank in inputs if rank != receiver)
    facts = {"discloses": discloses, "line": "p.py:1", "when": "once", "type": payload, "bytes": 8}
    return DisclosureRow(
        what=what, sender=sender, receiver=receiver, payload=payload, form=form,
        inputs=inputs, **{**facts, **more},
    )  # fmt: skip


def table(*rows, names=("bank", "shop", "clinic"), program="p"):
    return Disclosure(program, "", tuple(range(len(names))), rows, (), names=names)


def exchange() -> mp.Program:
    """A program of three parties with a loop, a branch, and an index."""

    def exchange(x, limit, index):
        def less(total):
            return mp.pshfl_s(mp.simp.pcall_static(0, toy.less, total, total), [0, 1, 2], [0] * 3)

        def step(total):
            mp.pshfl_s(total, 2, [0])
            return mp.simp.pcall_static(0, toy.scale, total)

        total = mp.while_loop(less, step, x)
        mp.pshfl(limit, index)
        return mp.uniform_cond(
            mp.pshfl_s(mp.simp.pcall_static(1, toy.less, limit, limit), [0, 1, 2], [1] * 3),
            lambda t: mp.pshfl_s(t, [1, 2], [0, 0]),
            lambda t: mp.pshfl_s(t, [1, 2], [0, 0]),
            total,
        )

    types = at(SCALAR, 0), at(SCALAR, 1), at(SCALAR, 2)
    return trace(exchange, *types, parties=3).program


def to_all(parties: int) -> mp.Program:
    """A program whose first party sends to all others, and they to their neighbours."""
    world = "{" + ", ".join(map(str, range(parties))) + "}"
    out = "{" + ", ".join(map(str, range(1, parties))) + "}"
    ring = [[(rank + 1) % parties, rank] for rank in range(1, parties)]
    back = "{" + ", ".join(map(str, sorted(to for to, _ in ring))) + "}"
    return mp.parse(f"""
        program "all" on {world} (%0: f32[3]@{{0}}) {{
          %1 = simp.shuffle_static(%0) {{routing = {[[to, 0] for to in range(1, parties)]}}}
            : f32[3]@{out} at "a_module_with_quite_a_long_name_for_a_margin.py:1234"
          %2 = simp.shuffle_static(%1) {{routing = {ring}}} : f32[3]@{back} at "b.py:2"
          return %2
        }}""")


def hostile() -> mp.Program:
    return mp.parse(r"""
        program "<script>alert(1)</script>" on {0, 1} (%0: table<["a\u001b[2J", "i64"]>@{0}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : table<["a\u001b[2J", "i64"]>@{1}
            at "y.py:3). Nobody learns anything. (<img src=x>\u001b[2J.py:1"
          return %1
        }""")


def random_table(seed: int) -> Disclosure:
    """Return a table of rows of all kinds, in all combinations."""
    pick = random.Random(seed)
    found = []
    for _ in range(pick.randint(0, 8)):
        what = pick.choice(
            ["move", "reveal", "predicate", "index", "result", "size", "duration", "failure",
             "change", "novel"]
        )  # fmt: skip
        sender = None if what == "reveal" else pick.randrange(3)
        others = [rank for rank in range(3) if rank != sender]
        receiver = {"result": "host", "failure": "everyone", "duration": "everyone"}.get(
            what, pick.choice(others)
        )
        inputs = tuple(sorted(pick.sample(range(3), pick.randint(0, 3))))
        known = pick.choice([receiver, pick.randrange(3)])
        discloses = tuple(rank for rank in inputs if rank not in (known, receiver))
        found.append(
            row(
                what, sender, receiver, pick.choice(["f32[3]", "bool[]"]),
                pick.choice(["plain", "plain", "share", "ciphertext"]), inputs,
                discloses=pick.choice([discloses, ()]), line=pick.choice(["p.py:1", "p.py:2"]),
                when=pick.choice(["once", "once", "per iteration", "in a branch"]),
            )
        )  # fmt: skip
    return table(*found)


@functools.cache
def shown() -> dict[str, Disclosure]:
    """Return the disclosures of all of them, by a name."""
    odd = ["銀行", HOSTILE, "a-name-that-is-quite-long-but-still-simple"]
    return {
        "exchange": analysis.disclosure(exchange(), names=["bank", "shop", "clinic"]),
        "odd names": analysis.disclosure(exchange(), names=odd),
        "five": analysis.disclosure(to_all(5)),
        "twelve": analysis.disclosure(to_all(12)),
        "hostile": analysis.disclosure(hostile(), names=["bank", HOSTILE]),
        "one": analysis.disclosure(mp.parse('program "none" on {0} () {\n return\n}')),
        "kinds": table(
            row(form="share", payload="f32[3]"),
            row("failure", 0, "everyone", when="if an op fails"),
            row("size", 0, 1, payload="table<>"),
            row("duration", 0, "everyone"),
            row("change", 1, 0, inputs=(0, 1), discloses=(), protocol="ABY3"),
            row("change", None, 2, discloses=()),
            row("reveal", None, "everyone"),
            row("novel", 2, "host", form="veiled", payload="odd<3>"),
            row("move", 1, 0, form="ciphertext", inputs=(2,)),
        ),
    }
