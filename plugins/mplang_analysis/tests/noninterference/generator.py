"""Random chains of programs as Python source, one statement a line.

The source calls the public API; a failing seed can be printed and run. Outputs of a program are
inputs of the next one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Literal, TypeAlias

import mplang_core as mp
from mplang_core.edsl.peval import peval

from . import functions

PARTIES = (0, 1, 2)
ALL = frozenset(PARTIES)
DEVICES = {"SP0": ALL, "SP1": frozenset({0, 1})}


def _cluster(protocol: str) -> mp.ClusterSpec:
    """Return the parties and devices; the SPU of two members has a protocol."""
    nodes = [f"node{rank}" for rank in PARTIES]
    config = {"protocol": protocol, "field": "FM64"}
    devices: dict[str, Any] = {
        f"P{rank}": {"kind": "PPU", "members": [node]} for rank, node in enumerate(nodes)
    }
    devices["SP0"] = {"kind": "SPU", "members": nodes}
    devices["SP1"] = {"kind": "SPU", "members": nodes[:2], "config": config}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": each} for each in nodes], "devices": devices}
    )


CLUSTER = _cluster("SEMI2K")
ON_CHEETAH = _cluster("CHEETAH")
"""The same on protocols that workers in production take."""

Kind: TypeAlias = Literal[
    "int", "table", "share", "piece", "private", "public", "key", "sealed", "tensor"
]


@dataclass(frozen=True)
class Variable:
    """A value of a generated program.

    Attributes:
        name: its name in the source.
        kind: ``int``, a scalar; ``share``, a secret on an SPU; ``piece``, shares of it at parties;
            ``sealed``, a ciphertext; …
        holders: who holds it; ``None`` if that is known at run time only.
        detail: of a share its device; of a key the name of it, the same at both parties; of a
            ciphertext that name, and the variable that it contains.
    """

    name: str
    kind: Kind
    holders: frozenset[int] | None
    detail: Any = None


@dataclass
class Source:
    """One generated program.

    Attributes:
        name: the name of its function.
        inputs: its parameters.
        outputs: what it returns.
        kept: the positions of those that stay at the parties, and are not results.
        lines: its lines.
        statements: the number of the top-level statement of each line.
    """

    name: str
    inputs: list[Variable]
    outputs: list[Variable] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    statements: dict[int, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The source."""
        return "\n".join(self.lines) + "\n"

    def function(self) -> FunctionType:
        """Return the function that the source defines."""
        scope = {"mp": mp, "f": functions, "peval": peval, **_crypto(), "__name__": "generated"}
        exec(compile(self.text, f"{self.name}.py", "exec"), scope)
        made = scope[self.name]
        assert isinstance(made, FunctionType)
        return made


def _crypto() -> dict[str, Any]:
    from mplang_crypto import agree, decrypt, encrypt, keygen, keypair
    from mplang_tables import to_tensor

    found = (agree, decrypt, encrypt, keygen, keypair, to_tensor)
    return {op.__name__: op for op in found}


def private_inputs(table_at: int) -> list[Variable]:
    """Return the inputs of the first program: numbers of one, two and three holders, a table."""
    alone = [Variable(f"x{rank}", "int", frozenset({rank})) for rank in PARTIES]
    pair, every = Variable("pair", "int", frozenset({0, 1})), Variable("every", "int", ALL)
    return [*alone, pair, every, Variable("people", "table", frozenset({table_at}))]


def generate(
    seed: int, length: int = 1, size: int = 9, themes: Sequence[Theme] | None = None
) -> list[Source]:
    """Return a chain of programs; the first has private inputs, later ones earlier outputs, too.

    Args:
        seed: determines everything.
        length: of the chain.
        size: statements of a program that is alone.
        themes: what programs are about; ``THEMES`` by default.
    """
    dice = random.Random(seed)
    private = private_inputs(dice.choice(PARTIES))
    found: list[Source] = []
    earlier: list[Variable] = []
    for i in range(length):
        again = [v for v in private if v.holders == ALL or dice.random() < 0.4]
        fresh = private if i == 0 else again
        kept = dice.sample(earlier, min(len(earlier), 6))
        source = Source(f"program_{seed}_{i}", [*fresh, *kept])
        _Writer(dice, source, themes or THEMES).write(size if length == 1 else 6)
        source.outputs = [replace(v, name=f"k{i}_{v.name}") for v in source.outputs]
        earlier = source.outputs
        found.append(source)
    return found


class _Writer:
    """Writer of the body of one program."""

    def __init__(self, dice: random.Random, source: Source, themes: Sequence[Theme]) -> None:
        self.dice, self.source = dice, source
        self.opening, self.mixture = dice.choice(themes)
        self.depth, self.count, self.statement = 1, 0, 0

    def write(self, size: int) -> None:
        parameters = ", ".join(v.name for v in self.source.inputs)
        self.line(f"def {self.source.name}({parameters}):", 0)
        env = list(self.source.inputs)
        for statement in self.opening:
            env = [*env, *statement(self, env, 0)]
        for _ in range(size - len(self.opening)):
            self.statement += 1
            env = self.add(env, 2)
        self.statement += 1
        made = [v for v in env if v.holders is not None and v not in self.source.inputs]
        # of most: passes remove what nobody uses
        outputs = [v for v in made if self.dice.random() < 0.8] or made[-1:] or env[:1]
        self.source.outputs = outputs
        self.source.kept = {i for i in range(len(outputs)) if self.dice.random() < 0.7}
        texts = [
            f"mp.keep({v.name})" if i in self.source.kept else v.name for i, v in enumerate(outputs)
        ]
        self.line(f"return {', '.join(texts)},")

    # -- lines

    def line(self, text: str, depth: int | None = None) -> None:
        indent = self.depth if depth is None else depth
        self.source.lines.append("    " * indent + text)
        self.source.statements[len(self.source.lines)] = self.statement

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def let(
        self, kind: Kind, holders: Iterable[int] | None, text: str, detail: Any = None
    ) -> Variable:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return Variable(name, kind, None if holders is None else frozenset(holders), detail)

    def function(self, name: str, parameters: str, body: Callable[[], str]) -> None:
        self.line(f"def {name}({parameters}):")
        self.depth += 1
        self.line(f"return {body()}")
        self.depth -= 1

    # -- choosing

    def pick(
        self, env: list[Variable], *kinds: Kind, at: Iterable[int] | None = None
    ) -> Variable | None:
        """Choose a variable of a kind whose holders are known, and include some."""
        wanted = frozenset(at or ())
        found = [
            v for v in env if v.kind in kinds and v.holders is not None and wanted <= v.holders
        ]
        # mostly the latest, so that data flows on
        return (
            self.dice.choice(found[-8:] if self.dice.random() < 0.7 else found) if found else None
        )

    def integer(self, env: list[Variable], at: Iterable[int] | None = None) -> Variable:
        found = self.pick(env, "int", at=at)
        assert found is not None  # the private inputs
        return found

    def single(self, env: list[Variable]) -> Variable:
        """Choose a number of one holder, or make it one's."""
        x = self.integer(env)
        assert x.holders is not None
        if len(x.holders) == 1:
            return x
        rank = self.one(x.holders)
        return self.let("int", [rank], f"mp.pshfl_s({x.name}, [{rank}], [{rank}])")

    def some(self, holders: Iterable[int]) -> list[int]:
        among = sorted(holders)
        return sorted(self.dice.sample(among, self.dice.randint(1, len(among))))

    def one(self, holders: Iterable[int] | None) -> int:
        return self.dice.choice(sorted(holders or ALL))

    # -- statements

    def add(self, env: list[Variable], depth: int) -> list[Variable]:
        """Add a statement that fits."""
        while True:
            statement = self.dice.choice(self.mixture)
            if depth > 0 or statement not in NESTED:
                made = statement(self, env, depth)
                if made:
                    return [*env, *made]

    def block(self, env: list[Variable], depth: int) -> list[Variable]:
        for _ in range(self.dice.randint(1, 3)):
            env = self.add(env, depth)
        return env

    def local(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.integer(env)
        y = self.integer(env, at=[self.one(x.holders)])
        assert x.holders is not None
        assert y.holders is not None
        ranks = self.some(x.holders & y.holders)
        name = self.dice.choice(["add", "subtract", "multiply"])
        text = f"mp.simp.pcall_static({ranks}, f.{name}, {x.name}, {y.name})"
        return [self.let("int", ranks, text)]

    def dynamic(self, env: list[Variable], depth: int) -> list[Variable]:
        numbers = [v for v in env if v.kind == "int"]
        x, y = self.dice.choice(numbers), self.dice.choice(numbers)
        return [self.let("int", None, f"mp.simp.pcall_dynamic(f.add, {x.name}, {y.name})")]

    def own(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.integer(env)
        assert x.holders is not None
        ranks = self.some(x.holders)
        operand = self.dice.choice([f"f.read, {x.name}", "f.load"])
        return [self.let("int", ranks, f"mp.simp.pcall_static({ranks}, {operand})")]

    def constant(self, env: list[Variable], depth: int) -> list[Variable]:
        ranks = self.some(ALL)
        number = self.dice.randrange(9)
        return [self.let("int", ranks, f"mp.constant({number}, parties={ranks})")]

    def move(self, env: list[Variable], depth: int) -> list[Variable]:
        kinds = sorted({v.kind for v in env if v.holders is not None} & MOVABLE)
        x = self.pick(env, self.dice.choice(kinds))
        assert x is not None
        to = self.some(ALL)
        frm = [self.one(x.holders) for _ in to]
        kind: Kind = "piece" if x.kind == "share" else x.kind
        return [self.let(kind, to, f"mp.pshfl_s({x.name}, {to}, {frm})", x.detail)]

    def put(self, env: list[Variable], depth: int) -> list[Variable]:
        x, to = self.single(env), self.one(ALL)
        return [self.let("int", [to], f'mp.put("P{to}", {x.name})')]

    def bounded(self, env: list[Variable], depth: int) -> list[Variable]:
        """Move a number that may be out of range, so that the run fails."""
        x, to = self.single(env), self.one(ALL)
        return [self.let("int", [to], f'mp.put("P{to}", {x.name}, range=(-35, 200))')]

    def pull(self, env: list[Variable], depth: int) -> list[Variable]:
        x, asked = self.integer(env, at=ALL), self.integer(env)
        assert asked.holders is not None
        ranks = self.some(asked.holders)
        text = f"mp.simp.pcall_static({ranks}, f.modulo_three, {asked.name})"
        index = self.let("int", ranks, text)
        return [index, self.let("int", ranks, f"mp.pshfl({x.name}, {index.name})")]

    def join(self, env: list[Variable], depth: int) -> list[Variable]:
        taken: list[Variable] = []
        union: frozenset[int] = frozenset()
        for x in self.dice.sample(env, len(env)):
            if x.kind == "int" and x.holders is not None and not x.holders & union:
                taken.append(x)
                union |= x.holders
        text = f"mp.pconv([{', '.join(x.name for x in taken)}])"
        return [self.let("int", union, text)] if len(taken) > 1 else []

    # tables

    def filter(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.pick(env, "table")
        if x is None:
            return []
        ranks = [self.one(x.holders)]
        return [self.let("table", ranks, f"mp.simp.pcall_static({ranks}, f.positive, {x.name})")]

    def total(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.pick(env, "table")
        if x is None:
            return []
        ranks = [self.one(x.holders)]
        run = f"mp.simp.pcall_static({ranks}, "
        row = self.let("table", ranks, f"{run}f.total, {x.name})")
        tensor = self.let("tensor", ranks, f"{run}to_tensor, {row.name}, rows=1)")
        return [self.let("int", ranks, f"{run}f.first, {tensor.name})")]

    # shares

    def seal(self, env: list[Variable], depth: int) -> list[Variable]:
        x, device = self.single(env), self.dice.choice(["SP0", "SP1", "SP1"])
        return [self.let("share", DEVICES[device], f'mp.seal({x.name}, to="{device}")', device)]

    def compute(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.pick(env, "share")
        if x is None:
            return []
        same = [v for v in env if v.kind == "share" and v.detail == x.detail]
        y = self.dice.choice(same)
        call = self.dice.choice(
            [f"same)({x.name}", f"affine)({x.name}"]
            + [f"{name})({x.name}, {y.name}" for name in ("add", "subtract", "multiply")]
        )
        text = f'mp.device("{x.detail}")(f.{call})'
        return [self.let("share", x.holders, text, x.detail)]

    def public(self, env: list[Variable], depth: int) -> list[Variable]:
        """Give an SPU what its members hold in plain, perhaps each another number."""
        x = self.pick(env, "share")
        y = None if x is None else self.pick(env, "int", at=DEVICES[x.detail])
        if x is None or y is None:
            return []
        name = self.dice.choice(["add", "subtract", "multiply", "replace"])
        members, operands = sorted(DEVICES[x.detail]), f"{x.name}, {y.name}"
        run = f"f.on_spu(f.{name}, {operands}, {members})"
        text = f"peval({run}, [{operands}], mp.Mask.from_ranks({members}))[0]"
        return [self.let("piece", x.holders, text, x.detail)]

    def hand_on(self, env: list[Variable], depth: int) -> list[Variable]:
        """Move the first member's share, in which what is public to it is as it is."""
        x = self.pick(env, "piece")
        if x is None:
            return []
        first, to = min(x.holders or ()), self.one(ALL)
        return [self.let("piece", [to], f"mp.pshfl_s({x.name}, [{to}], [{first}])", x.detail)]

    def meet(self, env: list[Variable], depth: int) -> list[Variable]:
        """Move shares of two secrets, mostly related ones, of different members to one party."""
        x = self.pick(env, "share")
        if x is None:
            return []
        y = self.dice.choice([v for v in env if v.kind == "share" and v.detail == x.detail])
        if self.dice.random() < 0.6:
            how = self.dice.choice(["affine", "same"])
            text = f'mp.device("{x.detail}")(f.{how})({x.name})'
            y = self.let("share", x.holders, text, x.detail)
        a, b = self.dice.sample(sorted(DEVICES[x.detail]), 2)
        to = self.one(ALL - DEVICES[x.detail] or ALL)  # a member has shares already
        return [
            self.let("piece", [to], f"mp.pshfl_s({v.name}, [{to}], [{member}])", x.detail)
            for v, member in ((x, a), (y, b))
        ]

    def reveal(self, env: list[Variable], depth: int) -> list[Variable]:
        x = self.pick(env, "share")
        if x is None:
            return []
        if self.dice.random() < 0.3:
            return [self.let("int", ALL, f"mp.reveal({x.name})")]
        to = self.one(ALL)
        return [self.let("int", [to], f'mp.reveal({x.name}, to="P{to}")')]

    # ciphertexts

    def channel(self, env: list[Variable], depth: int) -> list[Variable]:
        """Agree on a key between two parties."""
        a, b = self.dice.sample(PARTIES, 2)
        pairs = {}
        for rank in (a, b):
            private, public = self.fresh(), self.fresh()
            self.line(f'{private}, {public} = mp.device("P{rank}")(keypair)()')
            pairs[rank] = private, public
        made = [Variable(pairs[rank][0], "private", frozenset({rank})) for rank in (a, b)]
        keys = []
        for rank, other in ((a, b), (b, a)):
            public = pairs[other][1]
            if self.dice.random() < 0.4:  # another party hands it on, or one of its own
                public = f'mp.put("P{self.one(ALL)}", {public})'
            public = f'mp.put("P{rank}", {public})'
            text = f'mp.device("P{rank}")(agree)({pairs[rank][0]}, {public}, info="lab")'
            keys.append(self.let("key", [rank], text, f"{self.source.name}.{pairs[a][0]}"))
        return [*made, *keys]

    def keygen(self, env: list[Variable], depth: int) -> list[Variable]:
        return self.keygen_at(self.one(ALL))

    def keygen_at(self, rank: int) -> list[Variable]:
        made = self.let("key", [rank], f'mp.device("P{rank}")(keygen)()')
        return [replace(made, detail=f"{self.source.name}.{made.name}")]

    def encrypt(self, env: list[Variable], depth: int) -> list[Variable]:
        key = self.pick(env, "key")
        if key is None:
            return []
        x = self.pick(env, *self.dice.choice(CONTENTS), at=key.holders) or self.pick(
            env, "int", at=key.holders
        )
        assert x is not None
        ranks = sorted(key.holders or ())
        text = f"mp.simp.pcall_static({ranks}, encrypt, {x.name}, {key.name})"
        return [self.let("sealed", ranks, text, (key.detail, x))]

    def decrypt(self, env: list[Variable], depth: int) -> list[Variable]:
        fitting = [
            (x, key, rank)
            for x in env
            for key in env
            for rank in sorted((x.holders or ALL) & (key.holders or ALL))
            if x.kind == "sealed" and key.kind == "key" and x.detail[0] == key.detail
        ]
        if not fitting:
            return []
        x, key, rank = self.dice.choice(fitting)
        inner: Variable = x.detail[1]
        kind: Kind = "piece" if inner.kind == "share" else inner.kind
        text = f"mp.simp.pcall_static([{rank}], decrypt, {x.name}, {key.name})"
        return [self.let(kind, [rank], text, inner.detail)]

    def carry(self, env: list[Variable], depth: int) -> list[Variable]:
        """Have a party carry two ciphertexts of another, give one back, and get what is in it."""
        x = self.single(env)
        (owner,) = x.holders or ()
        carrier = self.one(ALL - {owner})
        (key,) = self.keygen_at(owner)
        there, back = f"[{carrier}], [{owner}]", f"[{owner}], [{carrier}]"
        plain = self.let("int", [owner], f"mp.constant(7, parties=[{owner}])")
        for content in (x, plain):
            run = f"mp.simp.pcall_static([{owner}], encrypt, {content.name}, {key.name})"
            sealed = self.let("sealed", [owner], run, (key.detail, content))
            sealed = self.let("sealed", [carrier], f"mp.pshfl_s({sealed.name}, {there})")
        sealed = self.let("sealed", [owner], f"mp.pshfl_s({sealed.name}, {back})")
        run = f"mp.simp.pcall_static([{owner}], decrypt, {sealed.name}, {key.name})"
        found = self.let("int", [owner], run)
        return [self.let("int", [carrier], f"mp.pshfl_s({found.name}, {there})")]

    def post(self, env: list[Variable], depth: int) -> list[Variable]:
        """Have a party send a table that the receiver cannot read, as it has no key."""
        x = self.pick(env, "table")
        if x is None:
            return []
        owner = self.one(x.holders)
        to = self.one(ALL - {owner})
        (key,) = self.keygen_at(owner)
        run = f"mp.simp.pcall_static([{owner}], encrypt, {x.name}, {key.name})"
        sealed = self.let("sealed", [owner], run, (key.detail, x))
        return [
            self.let("sealed", [to], f"mp.pshfl_s({sealed.name}, [{to}], [{owner}])", sealed.detail)
        ]

    # control flow

    def everyone(self, env: list[Variable]) -> Variable:
        """Broadcast a number of one holder."""
        x = self.integer(env)
        holder = self.one(x.holders)
        return self.let("int", ALL, f"mp.pshfl_s({x.name}, [0, 1, 2], [{holder}] * 3)")

    def wanted(self, env: list[Variable]) -> Callable[[list[Variable]], Variable]:
        """Choose what branches give: a number that all hold, or a share of a device."""
        share = self.pick(env, "share")
        device = share.detail if share is not None and self.dice.random() < 0.4 else None

        def choose(inner: list[Variable]) -> Variable:
            if device is None:
                return self.integer(inner, at=ALL)
            return [v for v in inner if v.kind == "share" and v.detail == device][-1]

        return choose

    def cond(self, env: list[Variable], depth: int) -> list[Variable]:
        choose = self.wanted(env)
        flag = self.everyone(env)
        pred = f"mp.simp.pcall_static([0, 1, 2], f.even, {flag.name})"
        pred_name = self.fresh()
        self.line(f"{pred_name} = {pred}")
        names = [f"branch{self.fresh()}" for _ in range(2)]
        given = choose(env)
        for name in names:
            self.function(name, "", lambda: choose(self.block([*env, flag], depth - 1)).name)
        text = f"mp.uniform_cond({pred_name}, {names[0]}, {names[1]})"
        return [flag, self.let(given.kind, given.holders, text, given.detail)]

    def loop(self, env: list[Variable], depth: int) -> list[Variable]:
        choose = self.wanted(env)
        flag = self.everyone(env)
        limit = self.fresh()
        self.line(f"{limit} = mp.simp.pcall_static([0, 1, 2], f.modulo_three, {flag.name})")
        start = choose(env)
        again, turn, state = f"again{limit}", f"turn{limit}", self.fresh()
        self.function(again, "s", lambda: f"mp.simp.pcall_static([0, 1, 2], f.less, s[0], {limit})")

        def body() -> str:
            self.line(f"i, {state} = s")
            result = choose(self.block([*env, replace(start, name=state)], depth - 1))
            return f"mp.simp.pcall_static([0, 1, 2], f.increment, i), {result.name}"

        self.function(turn, "s", body)
        text = f"mp.while_loop({again}, {turn}, (mp.constant(0), {start.name}))[1]"
        return [flag, self.let(start.kind, start.holders, text, start.detail)]

    def call(self, env: list[Variable], depth: int) -> list[Variable]:
        x, name, parameter = self.integer(env), f"called{self.fresh()}", self.fresh()
        result = x

        def body() -> str:
            nonlocal result
            result = self.block([*env, replace(x, name=parameter)], depth - 1)[-1]
            return result.name

        self.function(name, parameter, body)
        how = self.dice.choice(["function", "builtin_function"])
        text = f"mp.{how}({name})({x.name})"
        return [self.let(result.kind, result.holders, text, result.detail)]


Statement: TypeAlias = Callable[[_Writer, list[Variable], int], list[Variable]]

CONTENTS: list[list[Kind]] = [["int"], ["int"], ["piece", "share"], ["table"]]
MOVABLE = {"int", "table", "share", "piece", "sealed"}

PLAIN: list[Statement] = [
    *[_Writer.local] * 3,
    _Writer.dynamic,
    _Writer.own,
    _Writer.constant,
    *[_Writer.move] * 3,
    _Writer.put,
    *[_Writer.bounded] * 2,
    *[_Writer.pull] * 2,
    _Writer.join,
    _Writer.filter,
    _Writer.total,
]
SHARES: list[Statement] = [
    *[_Writer.seal] * 2,
    *[_Writer.compute] * 3,
    *[_Writer.move] * 2,
    *[_Writer.meet] * 2,
    _Writer.reveal,
]
CIPHERTEXTS: list[Statement] = [
    _Writer.channel,
    _Writer.keygen,
    *[_Writer.encrypt] * 4,
    *[_Writer.move] * 4,
    *[_Writer.decrypt] * 4,
    *[_Writer.carry] * 2,
]
NESTED: list[Statement] = [*[_Writer.cond] * 2, *[_Writer.loop] * 2, _Writer.call]

Theme: TypeAlias = tuple[list[Statement], list[Statement]]
"""What a program begins with, and the mixture of its other statements."""

THEMES: list[Theme] = [
    ([], PLAIN + NESTED),
    ([_Writer.seal, _Writer.seal], SHARES * 3 + PLAIN + NESTED),
    ([_Writer.channel, _Writer.encrypt], CIPHERTEXTS * 3 + PLAIN + NESTED),
    ([_Writer.channel, _Writer.seal], CIPHERTEXTS * 2 + SHARES * 2 + PLAIN + NESTED),
]
TABLES: Theme = ([], [*[_Writer.filter] * 6, *[_Writer.post] * 8, *PLAIN, *NESTED])
OPERANDS: Theme = (
    [_Writer.seal, _Writer.public, _Writer.hand_on],
    [*SHARES, *[_Writer.public, _Writer.hand_on] * 4, *PLAIN],
)
"""Public operands of SPU's functions, which differ from member to member."""
