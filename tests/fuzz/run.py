"""Fuzz one target, or run single inputs: ``python tests/fuzz/run.py WAY TARGET …``.

``coverage TARGET SECONDS FOLDER`` guides atheris by the coverage of mplang's packages; half of its
mutations know the format of the input. ``mutation TARGET SECONDS FOLDER SEED`` changes inputs of
the corpus. Both stop at the first finding, which is kept in the folder. ``replay TARGET FILE …``
runs inputs once. ``seeds`` writes the seeds of the corpus.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import random
import resource
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

HANG = 10  # seconds of CPU time that an input may take
BLOCKED = 60  # seconds that it may take on a busy machine
MEMORY = 4 << 10  # MB
MAX_LENGTH = 1 << 16  # bytes of an input of atheris
CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]


def corpus(name: str) -> list[Path]:
    """Return the files of the corpus of a target."""
    return sorted((CORPUS / name).iterdir())


def coverage(name: str, seconds: str, folder: str) -> None:
    """Fuzz with atheris, in a copy of the corpus."""
    import atheris

    packages = [path.name for path in ROOT.glob("plugins/*")]
    with atheris.instrument_imports(include=["mplang_core", *packages]):
        function = import_module("fuzz.targets").TARGETS[name]
    from fuzz.mutation import mutate

    known = [path.read_bytes() for path in corpus(name)]

    def change(data: bytes, largest: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, largest))
        return mutate(data, random.Random(seed), known)[:largest]

    work = Path(folder, "corpus")
    work.mkdir()
    options = [f"-max_total_time={seconds}", f"-timeout={BLOCKED}", f"-rss_limit_mb={MEMORY}"]
    options += [
        f"-max_len={MAX_LENGTH}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(work), str(CORPUS / name)], function, custom_mutator=change
    )
    atheris.Fuzz()


def mutation(name: str, seconds: str, folder: str, seed: str) -> None:
    """Change inputs of the corpus at random. An input that ends the process is ``crash``."""
    function = import_module("fuzz.targets").TARGETS[name]
    from fuzz.mutation import mutate

    rng, known = random.Random(int(seed)), [path.read_bytes() for path in corpus(name)]
    for data in known:  # imports, and what else happens once
        function(data)
    last, begin, count = Path(folder, "crash"), time.monotonic(), 0
    while time.monotonic() < begin + float(seconds):
        data = mutate(rng.choice(known), rng, known)
        last.write_bytes(data)
        with limits():
            function(data)
        count += 1
    last.unlink()
    print(f"{count} inputs, {count / float(seconds):.0f} per second")


@contextlib.contextmanager
def limits():
    """End the process when an input takes too long or too much memory.

    The signal does not wait for Python, which may be in a library.
    """
    signal.setitimer(signal.ITIMER_PROF, HANG)
    signal.setitimer(signal.ITIMER_REAL, BLOCKED)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    assert peak < MEMORY, f"the process takes {peak} MB"


def replay(name: str, *files: str) -> None:
    """Run inputs once."""
    function = import_module("fuzz.targets").TARGETS[name]
    for file in files:
        with limits():
            function(Path(file).read_bytes())


def seeds() -> None:
    """Write the seeds."""
    import_module("fuzz.seeds").write()


if __name__ == "__main__":
    sys.path[0] = str(ROOT / "tests")
    sys.path.append(str(ROOT / "plugins/mplang_worker/tests"))
    logging.disable(logging.WARNING)  # refusals are logged
    if sys.argv[1] != "coverage":  # libFuzzer has handlers of its own, if there are no others
        faulthandler.enable()
        for number in (signal.SIGALRM, signal.SIGPROF):
            faulthandler.register(number, chain=True)
    ways = {"coverage": coverage, "mutation": mutation, "replay": replay, "seeds": seeds}
    ways[sys.argv[1]](*sys.argv[2:])
