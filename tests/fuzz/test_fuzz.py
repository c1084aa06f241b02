"""The corpus through its targets, and, by ``make fuzz``, new inputs: no crashes, and no hangs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib import import_module

import msgspec
import pytest
from fuzz.run import CORPUS, ROOT, corpus

SECONDS = int(os.environ.get("MPLANG_FUZZ_SECONDS", "600"))  # per target and way
START = 300  # seconds to import all of mplang, instrumented, on a busy machine
NAMES = sorted(path.name for path in CORPUS.iterdir())
RUN = ROOT / "tests/fuzz/run.py"

pytestmark = pytest.mark.needs("jax", "spu", "ibis", "crypto", "http")


@pytest.mark.parametrize("name", NAMES)
def test_inputs_of_the_corpus(name):
    function = import_module("fuzz.targets").TARGETS[name]
    for path in corpus(name):
        function(path.read_bytes())


def test_every_target_has_a_corpus_of_small_files():
    assert sorted(import_module("fuzz.targets").TARGETS) == NAMES
    sizes = [path.stat().st_size for name in NAMES for path in corpus(name)]
    assert max(sizes) < 64 << 10
    assert sum(sizes) < 1 << 20


def test_the_credential_of_the_corpus_is_taken():
    """Else its certificates have expired, and only refusals would be tested."""
    targets = import_module("fuzz.targets")
    trust, *_ = targets._authority()
    data = (CORPUS / "certificates/credential").read_bytes()
    credential = msgspec.json.decode(data, type=targets.Credential)
    verify = targets.verify_credential
    assert verify(trust, "alice", credential, targets.STATEMENT).name == "alice"


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 2 * START)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["mutation", "coverage"])
def test_new_inputs(name, way):
    folder = ROOT / ".build/fuzz" / f"{way}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, RUN, way, name, str(SECONDS), folder]
    command += [str(time.time_ns())] if way == "mutation" else []
    done = subprocess.run(
        command, capture_output=True, timeout=SECONDS + START, text=True, errors="replace"
    )
    print(done.stdout[-500:], done.stderr[-2000:], sep="\n")
    found = [path for path in folder.iterdir() if path.is_file()]
    advice = "move the input to the corpus as found_…, and mend the cause"
    assert not found, f"run {sys.executable} {RUN} replay {name} {found[0]}; {advice}"
    assert done.returncode == 0
