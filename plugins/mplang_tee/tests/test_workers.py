"""On production workers: a join inside of an enclave by a TPM, of which its party sees nothing."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enclave_workers import EnclaveWorkers
from processes import descendants, engines_of

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError

pytestmark = pytest.mark.needs("http", "worker", "ibis", "jax", "data")

MARKER = "MARKER-0d9f3b1c-%04d"
PEOPLE = pa.table({
    "id": list(range(60)),
    "note": [MARKER % i for i in range(60)],
    "pay": [100.0 + i for i in range(60)],
})  # fmt: skip
VISITS = pa.table({"id": list(range(30, 90)), "visits": [1 + i % 3 for i in range(60)]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def workers(tpm_machine, folder):
    data = {"bank": {"people": PEOPLE}, "shop": {"visits": VISITS}}
    described = {}
    for party, sets in data.items():
        for name, table in sets.items():
            import pyarrow.parquet as parquet

            parquet.write_table(table, folder / f"{name}.parquet")
            columns = {field.name: str(field.type) for field in table.schema}
            about = {"columns": columns, "source": f"parquet:{folder}/{name}.parquet"}
            described[party] = {name: about}
    with EnclaveWorkers(tpm_machine, folder, data=described) as made:
        yield made


@pytest.fixture(scope="module")
def host(workers):
    with workers.connect() as made:
        yield made


def joined(people, visits):
    both = people.join(visits, "id")
    return both.group_by("visits").aggregate(n=both.count(), pay=both.pay.sum()).order_by("visits")


def whole(people, visits):
    return people.join(visits, "id").order_by("id")


def expected():
    pay = {n: [0, 0.0] for n in (1, 2, 3)}
    for i in range(30, 60):
        group = pay[1 + (i - 30) % 3]
        group[0], group[1] = group[0] + 1, group[1] + 100.0 + i
    return [{"visits": n, "n": count, "pay": total} for n, (count, total) in pay.items()]


def join():
    there = mp.device("T")(joined)(mp.dataset("bank", "people"), mp.dataset("shop", "visits"))
    return mp.reveal(there, to="B")


def test_a_join_in_an_enclave(host):
    found = mp.fetch(host, mp.evaluate(host, join))
    assert found.to_pylist() == expected()


def test_numbers_go_in_and_out(host):
    def program():
        x, y = mp.put("B", np.array([1.0, 2.0])), mp.put("S", np.array([10.0, 20.0]))
        z = mp.device("T")(lambda a, b: (a * b).sum())(x, y)
        return mp.reveal(z, to="S"), mp.reveal(mp.device("T")(lambda a: a + 1)(z), to="C")

    assert [float(x) for x in mp.fetch(host, mp.evaluate(host, program))] == [50.0, 51.0]


def test_the_owners_log_has_what_was_verified(host, folder):
    mp.evaluate(host, join)
    line = re.compile(r"the enclave of cloud is attested by tpm for run [0-9a-f]{64}: verified")
    for party in ("bank", "shop"):
        assert line.search((folder / f"{party}.log").read_text())


def keep_rows():
    """Keep whole rows inside of the enclave, and reveal their number."""
    people, visits = mp.dataset("bank", "people"), mp.dataset("shop", "visits")
    rows = mp.device("T")(whole)(people, visits)
    return rows, mp.reveal(mp.device("T")(lambda t: t.aggregate(n=t.count()))(rows), to="B")


def fails_inside():
    """Fail on a row inside of the enclave: the engine's text has it."""
    people = mp.dataset("bank", "people")
    wrong = mp.device("T")(lambda t: t.mutate(n=t.note.cast("int64")))(people)
    return mp.reveal(wrong, to="B")


def has_marker(pid: int) -> bool:
    """Return whether the memory of a process has a row of the bank's."""
    marker = re.compile(rb"MARKER-0d9f3b1c-00\d\d")
    with (
        suppress(OSError),
        open(f"/proc/{pid}/maps") as maps,
        open(f"/proc/{pid}/mem", "rb") as mem,
    ):
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(each, 16) for each in span.split("-"))
            with suppress(OSError, ValueError, OverflowError):
                mem.seek(start)
                if marker.search(mem.read(end - start)):
                    return True
    return False


@pytest.fixture(scope="module")
def rows_inside(host):
    """Keep rows inside of the enclave, and let an op fail on one."""
    rows, number = mp.evaluate(host, keep_rows)
    assert mp.fetch(host, number).to_pylist() == [{"n": 30}]
    with pytest.raises(PartyError, match=r"tee\.run"):
        mp.evaluate(host, fails_inside)
    return rows


def test_no_row_is_in_a_folder_or_a_log_of_the_enclaves_party(workers, rows_inside, folder):
    found = [folder / "cloud.log", *Path(workers._folder.name).rglob("*")]
    files = [path for path in found if path.is_file()]
    assert not [path for path in files if b"MARKER-0d9f3b1c" in path.read_bytes()]
    assert "failed inside of the enclave" in (folder / "cloud.log").read_text()


def test_rows_inside_are_not_fetched(host, rows_inside):
    with pytest.raises(MPLangError, match="stays at its party|handle"):
        mp.fetch(host, rows_inside)


@pytest.mark.skipif(os.getuid() != 0, reason="engines let root alone read their memory")
def test_no_row_is_in_another_process_of_the_enclaves_party(workers, rows_inside):
    front = workers.workers[2].pid
    engines = engines_of(front)
    assert any(map(has_marker, engines))
    others = [pid for pid in (front, *descendants(front)) if pid not in engines]
    assert not [pid for pid in others if has_marker(pid)]


@pytest.mark.long("three workers start, and one of them is measured")
def test_a_machine_that_has_started_something_else_gets_nothing(own_machine, folder):
    """The bank's worker refuses before anything is sealed; its log says why."""
    own_machine.extend("ab" * 32)
    with (
        EnclaveWorkers(own_machine, folder) as workers,
        workers.connect() as host,
        pytest.raises(PartyError, match=r"tee\.attest"),
    ):
        mp.evaluate(host, lambda: mp.reveal(mp.seal(mp.put("B", 1), to="T"), to="B"))
    assert "the machine booted other software" in (folder / "bank.log").read_text()
