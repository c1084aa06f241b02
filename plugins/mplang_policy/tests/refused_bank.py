"""A bank that refuses programs, and follows the advice of its refusals, as a machine would."""

from __future__ import annotations

import datetime
import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from mplang_analysis import RunRequest
from mplang_policy import Gate
from mplang_policy.envelope import open_envelope, read_key, sign
from mplang_policy.offline import asked_of, paths_of
from mplang_policy.owner import Owner
from mplang_policy.statements import read_statements
from policy_testbed import BANK, CATALOGUE, CLUSTER, NAMES, data_of_bank
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.ext import AdmissionError, Advice, Refusals


class Bank:
    """The bank: its worker's file, rules, keys and gate, and the program that an analyst runs.

    Args:
        folder: where its files are.
        program: makes the program; what it takes is what advice can change.
        rules: the rules.
        **gate: further fields of its gate.
    """

    def __init__(self, folder: Path, program: Callable[..., Any], rules: str, **gate: Any) -> None:
        self.folder, self.program = folder, program
        self.given: dict[str, Any] = {}  # what advice has changed of the program
        self.now, self.coordinator = time.time(), "analyst"
        self.seen: dict[str, str] = {}  # of its log, as the peers remember it
        self.head = b""  # of its log, as the peers are told with the last run
        self.inputs: list[Any] = []
        (folder / "bank.cedar").write_text(rules)
        fields = {"policy": "bank.cedar", "log": "gate.db", **gate}
        coordinators = ["analyst", "other"]
        self._write({**BANK, "coordinators": coordinators, "data": data_of_bank(), "gate": fields})
        self._gate: Gate | None = None

    @property
    def file(self) -> Path:
        """The worker's file."""
        return self.folder / "worker.yaml"

    @property
    def gate(self) -> Gate:
        """The gate, as the worker's file says."""
        if self._gate is None:
            owner = Owner.read(str(self.file))
            self._gate = Gate(owner.gate, "bank", owner.names, clock=lambda: self.now)
        return self._gate

    def close(self) -> None:
        """Close the gate; it is opened anew when it is needed."""
        if self._gate is not None:
            self._gate.close()
            self._gate = None

    def asks(self) -> Refusals:
        """Have the gate asked about the program; return what it refuses, nothing if it begins."""
        program = self.traced()
        asked = asked_of(program, NAMES, "bank", self.coordinator, "production")
        run = RunRequest("s", "s-0", asked, self.inputs, shared="s-0", seen=self.seen)
        try:
            decision = self.gate.decide(run)
            if not decision.allowed:
                self.gate.refuse(run, decision, paths_of(program, decision))
            self.head, _ = self.gate.begin(run, decision)
        except AdmissionError as error:
            return error.refusals
        return Refusals()

    def puts(self) -> Refusals:
        """Have the coordinator put a value; return what the gate refuses."""
        try:
            self.gate.put(self.coordinator, "s", "x", 8, "production")
        except AdmissionError as error:
            return error.refusals
        return Refusals()

    def traced(self) -> mp.Program:
        """Return the program, traced."""
        with mp.catalogue(CATALOGUE):
            compiled = mp.compile(self.made(), *self._kinds, cluster_spec=CLUSTER)
            return compiled.trace(None, *self._kinds).program

    def made(self) -> Callable[..., Any]:
        """Return the program as it is written now."""

        def program() -> Any:
            return self.program(**self.given)

        def of_one(year: Any) -> Any:
            return self.program(year, **self.given)

        return of_one if self.inputs else program

    @property
    def _kinds(self) -> list[mp.MPType]:
        return [mp.MPType(mp.TensorType("i64"), mp.Mask.all(3)) for _ in self.inputs]

    # -- following

    def follows(self, advice: Advice) -> None:
        """Change what an advice says, and nothing else."""
        match advice.kind:
            case "rule":
                self._rewrite(lambda text: f"{text}\n{advice.change}\n")
            case "exception":
                self._rewrite(lambda text: excepted(text, advice))
            case "setting":
                self._write(merged(self._read(), yaml.safe_load(advice.change)))
            case "command":
                self.runs(advice.change, answer="y\n")
            case "code" if advice.change.startswith("mp."):
                self.given["code"] = lambda: eval(advice.change, {"mp": mp})
            case "code":
                self.given |= eval(f"dict({advice.change})")
            case "receiver":
                self.given["receiver"] = advice.change.splitlines()[0]
            case "without":
                names = {*self.given.get("without", ()), *advice.change.splitlines()}
                self.given["without"] = names
            case "wait":
                self.now += 86_400

    def runs(self, line: str, answer: str = "", *, ok: bool = True) -> str:
        """Run a line of a shell, on the files of this bank; return what it prints."""
        from mplang_cli.cli import app

        words = shlex.split(line)
        assert words.pop(0) == "mplang"
        for i, word in enumerate(words):
            if word.endswith(".mpl"):
                words[i] = str(self.folder / word)
                with mp.catalogue(CATALOGUE):
                    compiled = mp.compile(self.made(), *self._kinds, cluster_spec=CLUSTER)
                    mp.artifact.save(words[i], compiled)
            words[i] = {"KEY": str(self.folder / "ann.key")}.get(words[i], words[i])
            words[i] = {"worker.yaml": str(self.file)}.get(words[i], words[i])
        done = CliRunner().invoke(app, words, input=answer)
        told = done.output + str(done.exception or "")
        assert (done.exit_code == 0) is ok, told
        return told

    def _rewrite(self, change: Callable[[str], str]) -> None:
        path = self.folder / "bank.cedar"
        path.write_text(change(path.read_text()))

    def _read(self) -> dict[str, Any]:
        return dict(yaml.safe_load(self.file.read_text()))

    def _write(self, fields: Mapping[str, Any]) -> None:
        self.file.write_text(yaml.safe_dump(dict(fields)))
        if hasattr(self, "_gate"):
            self.close()

    # -- approvals

    def signs(self, uses: int = 1, **changes: Any) -> None:
        """Have an approval of the program as it is, but for some of its fields."""
        owner, line = Owner.read(str(self.file)), "mplang approve p.mpl -c worker.yaml --key KEY"
        listed = "".join(f" --input {i}={each.numbers[0]}" for i, each in enumerate(self.inputs))
        self.runs(f"{line} --coordinator analyst --uses {uses} --yes{listed}")
        assert owner.gate.approvals is not None
        path = max(
            Path(owner.gate.approvals).glob("*.approval"), key=lambda each: each.stat().st_mtime_ns
        )
        approval = open_envelope(path.read_bytes(), {}).approval.model_copy(update=changes)
        path.write_bytes(sign(approval, read_key(str(self.folder / "ann.key"), None), None))

    def approvers(self) -> dict[str, Any]:
        """Return the fields of a gate whose approvals count."""
        self.runs(f"mplang approver-key {self.folder / 'ann.key'}")
        return {"approvals": "approvals", "approvers": {"ann": "ann.pub"}}


def excepted(text: str, advice: Advice) -> str:
    """Return rules with an exception in the statement at a place."""
    file, _, line = advice.where.partition(":")
    assert [each.place for each in read_statements(file, text)].count(advice.where) == 1
    lines = text.splitlines(keepends=True)
    before, rest = "".join(lines[: int(line) - 1]), "".join(lines[int(line) - 1 :])
    statement = re.match(r'(?:"(?:[^"\\]|\\.)*"|[^";])*', rest)
    assert statement is not None
    return f"{before}{statement[0]} {advice.change}{rest[statement.end() :]}"


def merged(fields: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with others set, at any depth."""
    return {
        **fields,
        **{
            name: merged(fields[name], value)
            if isinstance(value, dict) and isinstance(fields.get(name), dict)
            else value
            for name, value in more.items()
        },
    }


def long_ago() -> datetime.datetime:
    """Return a time at which nothing counts any more."""
    return datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
