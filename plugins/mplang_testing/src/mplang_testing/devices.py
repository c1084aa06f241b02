"""What kinds of devices promise: values come back, and nothing leaves without the user's word."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from mplang_analysis import disclosure
from mplang_simulator import Simulator

from mplang_core import (
    ClusterSpec,
    Form,
    Mask,
    MPLangError,
    MPObject,
    MPType,
    Program,
    TableType,
    TensorType,
    TraceContext,
    device as on_device,
    evaluate,
    fetch,
    put,
    registry,
    reveal,
    trace,
    with_ctx,
)
from mplang_core.ext import (
    PARTY,
    Device,
    DeviceKind,
    DisclosureError,
    Mode,
    SimpHost,
    StrictModel,
    device_kinds,
    transfers,
)
from mplang_testing.device_functions import FUNCTIONS, DeviceFunction
from mplang_testing.suite import Suite, complain
from mplang_testing.waiting import DEADLINE

MODES: tuple[Mode, ...] = ("standard", "launch")


class DeviceSuite(Suite, kit=True):
    """A kind of device takes values and gives them back, runs functions, and says who learns what.

    The suite moves values from each plain device of a cluster to each device of the kind, from
    there to every other device, and back, on the simulator. A kind whose form is not plain is
    protected: the way in discloses nothing, and every way out needs ``mp.reveal``. A kind whose
    form is plain runs ops, and the functions of all frontends that are installed.

    Attributes:
        kind: its name.
        values: arrays that it takes.
        tolerance: by how much a value may differ when it comes back.
        runs: what it runs of ``"ops"`` of one party, and Python functions of ``"arrays"`` and of
            ``"tables"``; by default all if it is plain, and none if it is protected. The rest it
            refuses with an error that names it.

    Example:
        >>> from mplang_core import ClusterSpec
        >>> class TestPpu(DeviceSuite):
        ...     kind = "PPU"
        ...
        ...     def cluster(self):
        ...         return ClusterSpec.simple(2)
    """

    kind: ClassVar[str]
    values: ClassVar[Sequence[Any]] = (np.array([[1.5, -2.0]]), np.array(7))
    tolerance: ClassVar[float] = 0.0
    runs: ClassVar[Sequence[str] | None] = None

    @abstractmethod
    def cluster(self) -> ClusterSpec:
        """Return a cluster with a device of the kind, and a ``PPU`` for each of two parties.

        A device of each kind with which it has a transfer of its own is there, too, and of others
        that it is to reach.
        """

    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the two modes of hosts."""
        return {"mode": {mode: mode for mode in MODES}}

    # -- what it is

    def test_it_is_described(self) -> None:
        """It is installed under its name, with a line for tools and a model for its fields."""
        kind, wrong = self._kind, []
        if not kind.doc.strip() or "\n" in kind.doc:
            wrong.append("doc is one line")
        model: Any = kind.config
        if model is not None and not issubclass(model, StrictModel):
            wrong.append("config is a StrictModel, so that misspelt fields are refused")
        if kind.members[0] < 1:
            wrong.append("a device has a member")
        if not self._mine():
            wrong.append(f"cluster() has a device of kind {kind.name}")
        if wrong:
            complain(
                f"the device kind {kind.name} is not described",
                expected="; ".join(wrong),
                got=kind,
                fix="correct its DeviceKind, or cluster() of the suite",
            )

    def test_it_says_why_it_does_not_run_a_feop(self) -> None:
        """Of every feop that is installed it says why not, in words, or runs it."""
        for meta in registry.list_ops():
            for members in (1, 2, 5):
                try:
                    reasons = self._kind.unsupported_reasons(meta, members)
                    bad = isinstance(reasons, str) or not all(map(_is_text, reasons))
                    got: object = reasons
                except Exception as error:
                    bad, got = True, f"{type(error).__name__}: {error}"
                if bad:
                    complain(
                        f"{self.kind} does not say whether it runs {meta.name}",
                        expected="a sequence of reasons, which is empty if it does",
                        got=got,
                        fix="correct unsupported_reasons(meta, members)",
                    )

    # -- ways in and out

    def test_values_come_back(self, mode: Mode) -> None:
        """What is put there and revealed again is what it was, for each reader."""
        with Simulator(self.cluster(), mode=mode, timeout=DEADLINE) as host:
            for value in self.values:
                for source, there, back in self._ways():
                    made = evaluate(host, lambda v=value, s=source, t=there, b=back: b(t(s(v))))
                    found = [each for each in _listed(fetch(host, made)) if each is not None]
                    if not found or not all(_near(each, value, self.tolerance) for each in found):
                        complain(
                            f"a value does not come back from a {self.kind}, in {mode} mode",
                            expected=value,
                            got=found,
                            fix="correct the transfers into it and out of it",
                        )

    def test_values_go_to_each_other_device_and_from_it(self, mode: Mode) -> None:
        """There is a way between it and each device of the cluster, if one of them is plain."""
        with Simulator(self.cluster(), mode=mode, timeout=DEADLINE) as host:
            for mine in self._mine():
                for other in self._devices():
                    if other != mine:
                        self._check_way(host, mine, other)
                        self._check_way(host, other, mine)

    def test_each_transfer_of_its_own_is_tried(self) -> None:
        """For each transfer that names another kind, the cluster has a device of that kind."""
        there = {PARTY, self.kind, *(each.kind.name for each in self._devices())}
        for way in self._kind.transfers:
            for end in (way.src, way.dst):
                if isinstance(end, str) and end not in there:
                    complain(
                        f"a transfer between a {self.kind} and a {end} is not tried",
                        expected=f"cluster() has a device of kind {end}",
                        got=sorted(there),
                        fix="add one to cluster() of the suite, or declare the transfer for "
                        "Form.PLAIN, which includes all plain kinds",
                    )

    def test_what_it_runs(self, mode: Mode) -> None:
        """Functions run there with the right result, or are refused by an error that names it."""
        runs = (tuple(FUNCTIONS) if self._is_plain else ()) if self.runs is None else self.runs
        with Simulator(self.cluster(), mode=mode, timeout=DEADLINE) as host:
            for device in self._mine():
                for name, function in FUNCTIONS.items():
                    if function.is_installed():
                        self._check_runs(host, device, function, name in runs)

    def test_no_way_out_is_automatic(self) -> None:
        """A transfer into any kind of plain device says what holds: it needs ``mp.reveal``."""
        if self._is_plain:
            return
        registry.list_ops()  # loads all plugins, of which each may bring a transfer
        for name, way in transfers:
            if way.src == self.kind and _is_plain(way.dst) and way.needs in ("auto", "put"):
                complain(
                    f"a {self.kind} lets values out without mp.reveal",
                    expected=f'Transfer("{self.kind}", {_named(way.dst)}, …, needs="reveal")',
                    got=f"needs={way.needs!r}, of {transfers.provider(name)}",
                    fix="correct it: mplang asks for mp.reveal all the same",
                )

    def test_what_is_protected_is_not_fetched(self) -> None:
        """The host gets no half of a value, and no ciphertext."""
        if self._is_plain:
            return
        with Simulator(self.cluster(), timeout=DEADLINE) as host:
            for device in self._mine():
                made = evaluate(host, lambda d=device: put(d.name, self.values[0]))
                try:
                    found = fetch(host, made)
                except DisclosureError:
                    continue
                complain(
                    f"the host fetches a value that is on a {self.kind}",
                    expected="DisclosureError",
                    got=found,
                    fix="have its values be of types whose form is the kind's",
                )

    def test_who_learns_what_is_told(self) -> None:
        """The table of disclosures has nobody learn by the way in, and the reader by the way out.

        It goes by the types of values and by what ops declare.
        """
        if self._is_plain:
            return
        for device in self._mine():
            told = disclosure(self._trace(lambda x, d=device: put(d.name, x)))
            learned = [row for row in told.rows if row.discloses and row.what != "failure"]
            if learned:
                complain(
                    f"the way into a {self.kind} discloses what is put there",
                    expected="nobody learns anything",
                    got=str(told),
                    fix="protect the value at a party that has it, by an op whose result has the "
                    "form of the kind; say in types and interfaces what is sent",
                )
            told = disclosure(self._trace(lambda x, d=device: reveal(put(d.name, x))))
            if not any(0 in row.discloses for row in told.rows):
                complain(
                    f"the way out of a {self.kind} is not in the table of disclosures",
                    expected="rows by which the others learn of party 0's value",
                    got=str(told),
                    fix="open it by an op that gives something plain of what is protected",
                )

    def test_what_it_does_not_take_is_an_error_of_ours(self) -> None:
        """A table, or elements of a strange type, end in an error that says what it takes."""
        for odd in (
            TableType((("a", "string"),)),
            TensorType("c128", (2,)),
            TensorType("f32", (0,)),
        ):
            for device in self._mine():
                try:
                    self._trace(lambda x, d=device: put(d.name, x), odd)
                except MPLangError:
                    continue
                except Exception as error:
                    complain(
                        f"{odd} on a {self.kind} ends in a wrong error",
                        expected="TraceError with what it takes, or that it is taken",
                        got=f"{type(error).__name__}: {error}",
                        fix="check the type in the transfer, before ops are made",
                    )

    # --

    @property
    def _kind(self) -> DeviceKind:
        found = device_kinds.get(self.kind)
        if found is None:
            complain(
                f"no device kind {self.kind!r} is installed",
                expected="a plugin's mplang_devices gives it",
                got=device_kinds.names(),
                fix="add the hook, and an entry point of the group mplang.frontends",
            )
        return found

    @property
    def _is_plain(self) -> bool:
        return self._kind.form is Form.PLAIN

    def _devices(self) -> list[Device]:
        """Return the devices of the cluster whose kinds are installed."""
        cluster = self.cluster()
        names = [name for name, spec in cluster.devices.items() if spec.kind in device_kinds]
        return [cluster.device(name) for name in names]

    def _mine(self) -> list[Device]:
        return [each for each in self._devices() if each.kind.name == self.kind]

    def _plain(self) -> list[Device]:
        """Return the plain devices of one party, of other kinds if there are some."""
        alone = [each for each in self._devices() if len(each.mask) == 1]
        plain = [each for each in alone if each.kind.form is Form.PLAIN]
        return [each for each in plain if each.kind.name != self.kind] or plain

    def _check_way(self, host: SimpHost, src: Device, dst: Device) -> None:
        """Move a value to one device and from there to another, and compare it."""
        value, is_secret = self.values[0], Form.PLAIN not in (src.kind.form, dst.kind.form)

        def program() -> Any:
            return reveal(_moved(_moved(put(self._plain()[0].name, value), src), dst))

        try:
            found: object = _listed(fetch(host, evaluate(host, program)))
            if all(_near(each, value, self.tolerance) for each in _listed(found)):
                return
        except MPLangError as error:
            found = str(error)
            if is_secret and all(each.name in found for each in (src, dst)):
                return  # from one protection to another is a way of its own, which a plugin brings
        complain(
            f"a value does not go from {src} to {dst}",
            expected=value,
            got=found,
            fix=f"declare Transfer(Form.PLAIN, {self.kind!r}, …) and Transfer({self.kind!r}, "
            "Form.PLAIN, …), which include all plain kinds",
        )

    def _check_runs(
        self, host: SimpHost, device: Device, function: DeviceFunction, must_run: bool
    ) -> None:
        """Run a function on a device, or be refused by an error that names it, if it may be."""
        on = on_device(device.name)
        try:
            with with_ctx(host):
                operand = put(self._plain()[0].name, function.operand())
            made = evaluate(host, lambda x: reveal(function.call(on, _moved(x, device))), operand)
            found: object = _listed(fetch(host, made))
            if all(function.is_right(each, self.tolerance) for each in _listed(found)):
                return
        except MPLangError as error:
            found = str(error)
            if not must_run and (device.name in found or self.kind in found):
                return
        complain(
            f"a {self.kind} does not run {function.what}",
            expected="its result" if must_run else "its result, or an error that names the device",
            got=found,
            fix="correct form, dialects, lowering and unsupported_reasons of its DeviceKind, or "
            "say in `runs` of the suite what it runs",
        )

    def _ways(self) -> Iterator[tuple[Callable[..., Any], ...]]:
        """Yield functions that put a value at its source, on the device, and back again."""
        plain = [each.name for each in self._plain()]
        sources: list[Callable[..., Any]] = [functools.partial(put, name) for name in plain]
        sources.append(_literal)
        for device in self._mine():
            there = functools.partial(put, device.name)
            for source in sources:
                yield source, there, reveal
            for name in plain:
                yield sources[0], there, functools.partial(reveal, to=name)

    def _trace(self, function: Callable[..., Any], kind: Any = None) -> Program:
        """Trace a function of a value that party 0 has for itself."""
        cluster = self.cluster()
        first = next(each for each in self._plain() if 0 in each.mask)
        given = MPType(kind or TensorType.of(self.values[0]), Mask.of(0))
        return trace(TraceContext(cluster), lambda x: function(put(first.name, x)), given).program


def _is_plain(end: str | Form) -> bool:
    """Return whether a destination of a transfer holds values in plain."""
    if isinstance(end, Form):
        return end is Form.PLAIN
    found = device_kinds.get(end)
    return end == PARTY or (found is not None and found.form is Form.PLAIN)


def _named(end: str | Form) -> str:
    return str(end) if isinstance(end, Form) else f'"{end}"'


def _moved(value: MPObject, to: Device) -> Any:
    """Return a value on a device; it is revealed to it if that needs the word."""
    src = cast("Device", value.device)
    opens = to.kind.form is Form.PLAIN and src.kind.form is not Form.PLAIN
    return reveal(value, to=to.name) if opens else put(to.name, value)


def _literal(value: Any) -> Any:
    return value


def _is_text(reason: object) -> bool:
    return isinstance(reason, str) and bool(reason.strip())


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _near(found: Any, value: Any, tolerance: float) -> bool:
    one, other = np.asarray(found), np.asarray(value)
    same = one.shape == other.shape
    return same and bool(np.allclose(one, other, rtol=0.0, atol=tolerance))
