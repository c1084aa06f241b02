"""Measurement of a worker: SHA-256 of its configuration, and of all code that it could import."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

SWAPS = Path("/proc/swaps")
LEFT_OUT = {"__pycache__"}


def measure(files: Sequence[str | os.PathLike[str]]) -> bytes:
    """Return the SHA-256 of files, and of all that Python finds on its path.

    Folders on the path go by their position, so that two machines with the same files have the
    same digest. What Python caches in ``__pycache__`` is left out, as it differs by time; it, the
    interpreter and the system's libraries are of the image, which registers measure.

    Args:
        files: of the configuration.

    Raises:
        OSError: a file cannot be read.
    """
    folders = _folders()
    named = [(f"file {i}", Path(each)) for i, each in enumerate(files)]
    code = [
        (f"path {i} {path.relative_to(folder).as_posix()}", path)
        for i, folder in enumerate(folders)
        for path in _below(folder, set(folders))
    ]
    lines = sorted(f"{name}\0{_digest(path)}\n" for name, path in (*named, *code))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).digest()


def is_swapping() -> bool:
    """Return whether the machine has swap space.

    Raises:
        OSError: it does not tell.
    """
    try:
        return len(SWAPS.read_text().splitlines()) > 1
    except FileNotFoundError:  # a kernel without swap
        return False


def _folders() -> list[Path]:
    """Return the folders and archives that a new process of this Python imports from.

    That of commands is among them, since Python looks there first for what a command imports.
    """
    asked = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\0', end='')"]
    answered = subprocess.run(asked, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    names = [*map(os.fsdecode, answered.stdout.split(b"\0")), sysconfig.get_path("scripts")]
    every = dict.fromkeys(Path(each) for each in names if each)
    return [each for each in every if each.exists()]


def _below(folder: Path, others: Collection[Path]) -> Iterator[Path]:
    """Yield the files of a folder, or an archive; those of other folders of the path are theirs.

    Links to folders are yielded, and followed where nothing else has led there.
    """
    if folder.is_file():
        yield folder
    seen: set[str] = set()
    for where, names, files in os.walk(folder, followlinks=True):
        here = Path(where)
        if (real := os.path.realpath(where)) in seen:
            names.clear()
            continue
        seen.add(real)
        ours = (name for name in names if name not in LEFT_OUT and here / name not in others)
        names[:] = sorted(ours)  # whichever of two links comes first
        links = (name for name in names if (here / name).is_symlink())
        yield from (here / name for name in (*files, *links))


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of what a link to something else says."""
    if path.is_symlink() and not path.is_file():
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
