"""Approvals: for one program as it was shown, for whom, how often and how long; nothing else."""

from __future__ import annotations

import datetime
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from mplang_analysis import PublicInput, RunRequest
from mplang_policy import Gate, Ledger
from mplang_policy.envelope import open_envelope
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_policy.package_versions import INSTALLED, Packages, installed_version
from mplang_policy.standing import Standing
from policy_testbed import BANK, CATALOGUE, CLUSTER, NAMES, RUNS
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.ext import AdmissionError, ConfigError

RULES = (
    RUNS
    + """
permit (principal, action == Action::"fetch", resource) when { context.approved };
"""
)
YEAR = mp.MPType(mp.TensorType("i64"), mp.Mask.all(3))


def pay(year, month):
    """The pay, as of a month, which every run may choose."""
    table = mp.dataset("bank", "people", ["pay"])
    summed = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum()))(table)
    return summed, year, month


def other_pay(year, month):
    """The same with one constant changed."""
    table = mp.dataset("bank", "people", ["pay"])
    summed = mp.device("P0")(lambda t: t.agg(pay=t.pay.sum() + 1))(table)
    return summed, year, month


def packed(fn, path: Path) -> Path:
    """Write the artifact of a function of a year and a month."""
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(path, mp.compile(fn, YEAR, YEAR, cluster_spec=CLUSTER))
    return path


class Bank:
    """The bank: its worker's file, keys, rules, and its gate."""

    def __init__(self, folder: Path, threshold: int = 1) -> None:
        self.folder = folder
        self.run("approver-key", folder / "ann.key")
        self.run("approver-key", folder / "bob.key")
        self.run("approver-key", folder / "eve.key")
        (folder / "rules.cedar").write_text(RULES)
        gate = {
            "policy": "rules.cedar", "log": "gate.db", "approvals": "approvals",
            "approvers": {"ann": "ann.pub", "bob": "bob.pub"}, "threshold": threshold,
        }  # fmt: skip
        fields = {**BANK, "coordinators": ["analyst", "other"], "data": CATALOGUE["bank"]}
        self.worker = {**fields, "gate": gate}
        (folder / "worker.yaml").write_text(yaml.safe_dump(self.worker))
        self.owner = Owner.read(str(folder / "worker.yaml"))
        self.gate = Gate(self.owner.gate, "bank", self.owner.names)
        self.program = packed(pay, folder / "pay.mpl")

    def run(self, *args, ok: bool = True, given: str | None = None) -> str:
        """Run a command, and return what it prints."""
        from mplang_cli.cli import app

        done = CliRunner().invoke(app, [str(each) for each in args], input=given)
        told = done.output + (str(done.exception) if done.exception else "")
        assert (done.exit_code == 0) is ok, told
        return told

    def approve(self, *args, key: str = "ann", program: Path | None = None, ok: bool = True) -> str:
        """Approve a program for the analyst."""
        config = ["-c", self.folder / "worker.yaml", "--key", self.folder / f"{key}.key", "--yes"]
        inputs = ["--input", "year=2015..2025", "--input", "month=1,6", "--coordinator", "analyst"]
        return self.run("approve", program or self.program, *config, *inputs, *args, ok=ok)

    def wants(self, fn=pay, coordinator="analyst", year=2020, month=6) -> RunRequest:
        """Return a run of a function, as a worker would be asked."""
        with mp.catalogue(CATALOGUE):
            program = mp.compile(fn, YEAR, YEAR, cluster_spec=CLUSTER).program
        asked = asked_of(program, NAMES, "bank", coordinator, "production")
        return RunRequest("s", "s-0", asked, [PublicInput(0, (year,)), PublicInput(1, (month,))])

    def asks(self, run: RunRequest) -> str:
        """Return why a run is refused; nothing if it begins."""
        try:
            decision = self.gate.decide(run)
            if not decision.allowed:
                self.gate.refuse(run, decision)
            self.gate.begin(run, decision)
        except AdmissionError as error:
            return str(error)
        return ""

    @property
    def files(self) -> list[Path]:
        """The approvals."""
        return sorted((self.folder / "approvals").glob("*.approval"))


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path)
    yield made
    made.gate.close()


def test_a_program_runs_once_it_is_approved_and_as_often_as_that_says(bank):
    assert "once bank has approved this program, its rules permit it" in bank.asks(bank.wants())
    bank.approve("--uses", "2")
    assert bank.asks(bank.wants(year=2015)) == ""
    assert bank.asks(bank.wants(year=2025, month=1)) == ""
    assert "its 2 uses are used up" in bank.asks(bank.wants())
    with closing(Ledger(bank.folder / "gate.db", read_only=True)) as ledger:
        found = [each for each in ledger.entries() if each.kind in ("run", "refusal")]
        kinds = [(each.kind, "approval" in each.body) for each in found]
    assert kinds == [("refusal", False), ("run", True), ("run", True), ("refusal", False)]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"fn": other_pay}, None),
        ({"coordinator": "other"}, "it is for analyst"),
        ({"year": 2014}, "year is 2014, and may be from 2015 to 2025"),
        ({"year": 2026}, "year is 2026"),
        ({"year": float("nan")}, "year is nan"),
        ({"month": 2}, "month is 2, and may be 1 or 6"),
    ],
)
def test_what_was_not_approved_does_not_run(bank, wanted, told):
    bank.approve()
    refused = bank.asks(bank.wants(**wanted))
    assert "no rule permits it" in refused
    if told is not None:
        assert told in refused
    assert bank.asks(bank.wants()) == ""


def test_another_program_of_the_same_name_is_told_by_its_digest(bank):
    bank.approve()
    renamed = lambda year, month: other_pay(year, month)  # noqa: E731
    renamed.__name__ = "pay"
    run = bank.wants(fn=renamed)
    assert f"it is for program {bank.wants().asked.program[:12]}" in bank.asks(run)


def test_an_input_that_is_not_public_is_not_the_one_that_was_shown(bank):
    bank.approve()
    run = bank.wants()
    told = bank.asks(RunRequest("s", "s-0", run.asked, run.inputs[:1]))
    assert "month must be public, and the same at all parties" in told
    large = [PublicInput(0, None), run.inputs[1]]
    assert "year is too large to be looked at" in bank.asks(
        RunRequest("s", "s-0", run.asked, large)
    )


def test_inputs_that_are_made_of_other_data_than_was_shown_are_refused(bank):
    """A run over what an earlier program returned discloses more than the review said."""
    from dataclasses import replace

    bank.approve()
    asked, inputs = bank.wants().asked, bank.wants().inputs

    def over(name, rows=asked.rows):
        changed = [
            replace(row, sources=tuple(replace(each, name=name) for each in row.sources))
            for row in rows
        ]
        return RunRequest("s", "s-0", replace(asked, rows=changed), inputs)

    assert "nobody was shown that" in bank.asks(over("data set people.id"))
    fewer = [row for row in asked.rows if row.what == "result"]
    assert bank.asks(over("data set people.pay", fewer)) == ""


def test_a_signature_of_a_key_that_is_not_listed_counts_nothing(bank):
    bank.approve(key="eve")
    assert "no rule permits" in bank.asks(bank.wants())
    assert "0 of 1 signatures" in bank.run("approvals", "-c", bank.folder / "worker.yaml")


def test_an_approval_that_was_changed_counts_nothing(bank):
    bank.approve("--uses", "1")
    (file,) = bank.files
    envelope = json.loads(file.read_text())
    import base64

    payload = json.loads(base64.b64decode(envelope["payload"]))
    payload["uses"] = 1000
    envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    file.write_text(json.dumps(envelope))
    assert "no rule permits" in bank.asks(bank.wants())


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"payload": 1}', b"\xff\xfe", b"[" * 100_000, b"{}" * 10]
)
def test_what_is_no_approval_is_left_out(bank, data):
    bank.approve()
    (bank.folder / "approvals" / "a.approval").write_bytes(data)
    assert bank.asks(bank.wants()) == ""
    with pytest.raises(ConfigError, match="no envelope"):
        open_envelope(data, {})


def test_an_approval_of_another_party_counts_nothing(bank):
    bank.approve()
    text = (bank.folder / "worker.yaml").read_text()
    (bank.folder / "shop.yaml").write_text(text.replace("name: bank", "name: shop"))
    shop = Owner.read(str(bank.folder / "shop.yaml"))
    gate = Gate(shop.gate, "shop", shop.names)
    run = bank.wants()
    assert "it is of bank" in " ".join(gate.decide(run).remarks)
    gate.close()


def test_an_approval_that_is_revoked_does_not_count_from_then_on(bank):
    bank.approve("--uses", "5")
    assert bank.asks(bank.wants()) == ""
    name = bank.files[0].stem.rpartition("-")[2]
    bank.run("revoke", name, "-c", bank.folder / "worker.yaml")
    assert "it was revoked" in bank.asks(bank.wants())
    assert "revoked" in bank.run("approvals", "-c", bank.folder / "worker.yaml")
    bank.run("revoke", "nonsense", "-c", bank.folder / "worker.yaml", ok=False)


def test_an_approval_that_has_expired_does_not_count_even_if_the_clock_is_set_back(bank):
    bank.approve("--expires", "12h")
    bank.gate.close()
    now = datetime.datetime.now(datetime.UTC).timestamp()
    clock = [now + 13 * 3600]
    gate = Gate(bank.owner.gate, "bank", bank.owner.names, clock=lambda: clock[0])
    assert "it expired on" in " ".join(gate.decide(bank.wants()).remarks)
    gate.record("look", {})
    clock[0] = now
    with pytest.raises(AdmissionError, match="until its owner has repaired its log"):
        gate.decide(bank.wants())
    assert "the clock is" in gate.refuses()
    gate.close()
    bank.gate = Gate(bank.owner.gate, "bank", bank.owner.names)


def test_other_versions_than_were_approved_are_refused_until_it_is_renewed(bank):
    bank.approve("--uses", "3")
    bank.gate.close()

    def newer(name):
        return "9.9.9" if name == "mplang-ibis" else installed_version(name)

    silent = Packages(newer, lambda name: None)  # which declares nothing
    bank.gate = Gate(bank.owner.gate, "bank", bank.owner.names, silent)
    assert "it was made with mplang-ibis" in bank.asks(bank.wants())
    told = bank.approve("--renew", bank.files[0])
    assert "only versions have changed: none" in told
    assert ", 3 uses, " in told
    bank.gate.close()
    bank.gate = Gate(bank.owner.gate, "bank", bank.owner.names, INSTALLED._replace(version=newer))
    assert bank.asks(bank.wants()) == ""  # it declares that it means the same


@pytest.fixture
def other_ibis(monkeypatch):
    """Have another version of a package here, which declares nothing."""
    of = Standing.of

    def install(version):
        here = Packages(
            lambda name: version if name == "mplang-ibis" else installed_version(name),
            lambda name: None,
        )
        monkeypatch.setattr(Standing, "of", lambda ledger, packages=None: of(ledger, here))
        return here

    return install


def test_approvals_never_says_that_something_counts_which_the_gate_refuses(bank, other_ibis):
    listed = ["approvals", "-c", bank.folder / "worker.yaml"]
    bank.approve("--uses", "2")
    assert ": counts;" in bank.run(*listed)
    assert ": counts;" in bank.run(*listed[:1], bank.program, *listed[1:])
    (bank.folder / "rules.cedar").write_text("forbid (principal, action, resource);")
    assert "counts" not in bank.run(*listed[:1], bank.program, *listed[1:])
    (bank.folder / "rules.cedar").write_text("permit (")
    assert "nothing runs" in bank.run(*listed)
    (bank.folder / "rules.cedar").write_text(RULES)
    other_ibis("9.9.9")
    assert "other versions: it was made with mplang-ibis" in bank.run(*listed)


def test_all_approvals_are_renewed_and_keep_their_uses(bank, other_ibis):
    bank.approve("--uses", "2")
    assert bank.asks(bank.wants()) == ""
    other = packed(other_pay, bank.folder / "other.mpl")
    bank.approve("--expires", "12h", program=other)
    before = [open_envelope(file.read_bytes(), {}).approval for file in bank.files]
    bank.gate.close()
    here = other_ibis("9.9.9")
    args = ["-c", bank.folder / "worker.yaml", "--renew", "--all", "--key"]
    refusal = bank.run("approve", *args, bank.folder / "eve.key", ok=False)
    assert "not among gate.approvers" in refusal
    told = bank.run("approve", *args, bank.folder / "ann.key")
    assert "mplang-ibis" in told
    assert "used 1 of 2 times, and counts" in told
    after = [open_envelope(file.read_bytes(), {}).approval for file in bank.files]
    same = {"id", "uses", "made", "expires", "program", "rows"}
    told = [[each.model_dump(include=same) for each in some] for some in (before, after)]
    assert told[0] == told[1]
    bank.gate = Gate(bank.owner.gate, "bank", bank.owner.names, here)
    assert bank.asks(bank.wants()) == ""
    assert "its 2 uses are used up" in bank.asks(bank.wants())
    assert bank.run("approve", *args, bank.folder / "ann.key") == ""  # there is nothing left


def test_all_approvals_are_renewed_by_as_many_as_have_to_sign(tmp_path, other_ibis):
    """Until then the old file stays, and does not count."""
    bank = Bank(tmp_path, threshold=2)
    bank.approve()
    (file,) = bank.files
    bank.approve("--sign", file, "--out", file, key="bob")
    bank.gate.close()
    here, before = other_ibis("9.9.9"), file.read_bytes()
    args = ["approve", "-c", bank.folder / "worker.yaml", "--renew", "--all", "--key"]
    assert "1 of 2 signatures" in bank.run(*args, tmp_path / "ann.key")
    assert file.read_bytes() == before
    assert "counts" not in bank.run("approvals", "-c", tmp_path / "worker.yaml")
    assert "signed by ann, bob" in bank.run(*args, tmp_path / "bob.key")
    bank.gate = Gate(bank.owner.gate, "bank", bank.owner.names, here)
    assert bank.asks(bank.wants()) == ""
    bank.gate.close()


def test_a_renewal_of_something_else_is_refused(bank):
    bank.approve()
    changed = packed(other_pay, bank.folder / "other.mpl")
    told = bank.approve("--renew", bank.files[0], program=changed, ok=False)
    assert "more has changed than versions: program, name" in told


def test_two_have_to_sign_where_the_owner_says_so(tmp_path):
    bank = Bank(tmp_path, threshold=2)
    bank.approve("--uses", "1")
    assert "no rule permits" in bank.asks(bank.wants())
    (first,) = bank.files
    bank.approve("--sign", first, "--out", first, key="ann")  # the same one again
    assert "1 of 2 signatures" in bank.run("approvals", "-c", tmp_path / "worker.yaml")
    other = packed(other_pay, tmp_path / "other.mpl")
    assert "is of something else" in bank.approve(
        "--sign", first, program=other, key="bob", ok=False
    )
    bank.approve("--sign", first, "--out", first, key="bob")
    assert bank.asks(bank.wants()) == ""
    assert "signed by ann, bob" in bank.run("approvals", "-c", tmp_path / "worker.yaml")
    bank.gate.close()


def test_an_approver_that_is_removed_by_a_reload_has_signed_nothing(bank):
    """Neither what a coordinator has passed on before, nor what was decided and has not begun."""
    bank.approve("--uses", "5")
    (file,) = bank.files
    data = file.read_bytes()
    file.unlink()
    passed_on = bank.gate.open_approval(data, "analyst")
    run = replace(bank.wants(), approvals=(passed_on,))
    assert bank.asks(run) == ""
    decision = bank.gate.decide(run)
    assert decision.allowed
    gate = bank.owner.gate.model_dump(mode="json")
    bank.gate.reload({**gate, "approvers": {"bob": gate["approvers"]["bob"]}}, bank.worker)()
    assert "no rule permits" in bank.asks(run)
    with pytest.raises(AdmissionError, match="no rule permits"):
        bank.gate.begin(run, decision)


def test_the_same_key_twice_is_one_signer(tmp_path):
    bank = Bank(tmp_path)
    bank.gate.close()
    same = {"ann": str(tmp_path / "ann.pub"), "also ann": str(tmp_path / "ann.pub")}
    config = bank.owner.gate.model_copy(update={"approvers": same})
    with pytest.raises(ConfigError, match="ann have the same key|also ann and ann"):
        Gate(config, "bank", bank.owner.names)


def test_each_public_input_needs_a_word_of_the_owner(bank):
    config = ["-c", bank.folder / "worker.yaml", "--key", bank.folder / "ann.key", "--yes"]
    told = bank.run("approve", bank.program, *config, "--coordinator", "analyst", ok=False)
    assert "say what year and month may be" in told
    for wrong in ("week=1", "year=", "year=a..b"):
        told = bank.run(
            "approve", bank.program, *config, "--coordinator", "analyst", "--input", wrong, ok=False
        )
        assert f"--input {wrong}" in told


def test_whoever_signs_is_shown_the_program_and_asked(bank):
    config = ["-c", bank.folder / "worker.yaml", "--key", bank.folder / "ann.key"]
    inputs = ["--input", "year=2015..2025", "--input", "month=any", "--coordinator", "analyst"]
    told = bank.run("approve", bank.program, *config, *inputs, given="n\n", ok=False)
    assert "The host may fetch" in told
    assert "Sign that analyst may run it 1 times?" in told
    assert bank.files == []


def test_a_key_without_a_password_is_said_to_be_readable(bank):
    told = bank.run("approver-key", bank.folder / "open.key")
    assert "open.key is not encrypted" in told
    assert "$MPLANG_KEY_PASSWORD" in told


def test_a_key_with_a_password_needs_it(bank, monkeypatch):
    monkeypatch.setenv("MPLANG_KEY_PASSWORD", "secret")
    assert "not encrypted" not in bank.run("approver-key", bank.folder / "locked.key")
    assert (bank.folder / "locked.key").stat().st_mode & 0o077 == 0
    monkeypatch.delenv("MPLANG_KEY_PASSWORD")
    assert "cannot read the key" in bank.approve(key="locked", ok=False)


def test_a_review_has_what_an_owner_asks(bank):
    config = ["-c", bank.folder / "worker.yaml", "--as", "bank", "--coordinator", "analyst"]
    told = bank.run("review", bank.program, *config, "--input", "year=2015..2025")
    flat = " ".join(told.split())
    for each in (
        "The host may fetch",
        "people",
        "pay",
        "from 2015 to 2025",
        "not said: --input NAME=LOW..HIGH",
        "The rules of bank permit it to analyst once it is approved.",
        "SELECT",
        bank.wants().asked.program[:20],
    ):
        assert each in flat, each
    assert max(map(len, told.splitlines())) <= 100
    page = bank.folder / "review.html"
    bank.run("review", bank.program, *config, "--html", page)
    text = page.read_text()
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.needs("spu", "jax")
def test_a_review_says_what_protocols_take_and_which_costs_it_leaves_out(bank, monkeypatch):
    nodes = [{"name": name} for name in NAMES]
    cluster = mp.ClusterSpec(nodes, {"SP": {"kind": "SPU", "members": NAMES}})

    def joint(year, month):
        return mp.reveal(mp.device("SP")(lambda x: x * x)(mp.seal(mp.constant(3, parties=0))))

    program = bank.folder / "joint.mpl"
    mp.artifact.save(program, mp.compile(joint, YEAR, YEAR, cluster_spec=cluster))
    config = ["-c", bank.folder / "worker.yaml", "--coordinator", "analyst"]
    told = " ".join(bank.run("review", program, *config, "--link", "20,200").split())
    assert "What protocols take, line by line" in told
    assert "at 20 ms there and back and 200 Mbit/s" in told
    wrong = bank.run("review", program, *config, "--link", "5,", ok=False)
    assert "link: expected lan, wan or 40,100" in wrong

    def broken(request):
        raise mp.errors.RunError("the process that counts has ended")

    monkeypatch.setattr("mplang_spu.costs.apart.counted", broken)
    told = " ".join(bank.run("review", program, *config).split())
    assert "among 0, 1, 2 unknown unknown once: spu.run_jax at test_approvals.py:" in told
    assert "are lower bounds: those of spu.run_jax are not counted" in told

    def involved(program, link):
        raise mp.errors.VerifyError("too involved")

    monkeypatch.setattr("mplang_policy.review.costs", involved)
    told = " ".join(bank.run("review", program, *config).split())
    assert "Costs - Not known: the analysis does not take this program." in told


def test_a_program_that_the_rules_refuse_even_if_approved_is_told_so(bank):
    (bank.folder / "rules.cedar").write_text(
        RULES + '@id("never") forbid (principal, action == Action::"fetch", resource);'
    )
    config = ["-c", bank.folder / "worker.yaml", "--coordinator", "analyst"]
    told = " ".join(bank.run("review", bank.program, *config).split())
    assert "The rules of bank refuse it, approved or not." in told
    assert 'it is forbidden by "never"' in told


def test_runs_that_were_stopped_and_those_of_a_revoked_approval_are_withdrawn(bank):
    bank.approve("--uses", "9")
    (name,) = [each.stem.rpartition("-")[2] for each in bank.files]
    with bank.gate._ledger.writing() as writing:
        for run, approval in [("s-0", name), ("s-1", "f" * 16)]:
            writing.change("INSERT INTO rests VALUES ('analyst', ?, ?)", run, approval)
    runs = ["s-0", "s-1", "s-2", "'; DROP TABLE log; --"]
    assert bank.gate.lineage.withdrawn("analyst", runs) == set()
    bank.run("revoke", name, "-c", bank.folder / "worker.yaml")
    assert name in bank.gate.stops.revoked()
    assert bank.gate.lineage.withdrawn("analyst", runs) == {"s-0"}
    bank.gate.stops.stop(
        "analyst", ["s-2"], {"session": "s", "why": "the owner stopped it", "by": "cli"}
    )
    assert bank.gate.lineage.withdrawn("analyst", runs) == {"s-0", "s-2"}
    assert bank.gate.lineage.withdrawn("other", runs) == set()
    with closing(Ledger(bank.folder / "gate.db", read_only=True)) as ledger:
        (stopped,) = (each for each in ledger.entries() if each.kind == "stopped")
    assert stopped.body["runs"] == ["s-2"]
