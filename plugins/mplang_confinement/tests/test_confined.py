"""What a process cannot do once it has given it up."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys

import pytest
from mplang_confinement import has_seccomp, landlock_version

needs_landlock = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
needs_ports = pytest.mark.skipif(landlock_version() < 4, reason="Landlock knows no ports here")
needs_seccomp = pytest.mark.skipif(not has_seccomp(), reason="no calls can be given up here")
REFUSED = {errno.EPERM, errno.EACCES}
PRELUDE = "from mplang_confinement import *; import os, socket; give_up_privileges()\n"


def act(*lines, args=()):
    """Run lines in a process, each after those before it; return the errors, 0 for none."""
    code = [PRELUDE, "from pathlib import Path; import sys; at = sys.argv[1:]"]
    for line in lines:
        code.append(f"try: {line}\nexcept OSError as error: print(error.errno)\nelse: print(0)")
    command = [sys.executable, "-c", "\n".join(code), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [int(line) for line in done.stdout.split()]


@needs_landlock
def test_only_files_that_are_named_are_read(tmp_path):
    for name in ("mine", "other"):
        (tmp_path / name).write_text(name)
    found = act(
        "give_up_files(readable=[at[0]])", "Path(at[0]).read_text()", "Path(at[1]).read_text()",
        "Path(at[0]).write_text('x')", "os.listdir(Path(at[0]).parent)", "import json.tool",
        args=[tmp_path / "mine", tmp_path / "other"],
    )  # fmt: skip
    assert found[:2] == [0, 0]
    assert set(found[2:5]) <= REFUSED
    assert found[5] == 0


@needs_landlock
def test_files_are_made_changed_and_removed_in_a_folder_that_is_named(tmp_path):
    (tmp_path / "mine").mkdir()
    found = act(
        "give_up_files(writable=[at[0]])", "Path(at[0], 'a').write_text('x')",
        "os.truncate(Path(at[0], 'a'), 0)", "os.unlink(Path(at[0], 'a'))",
        "Path(at[0], '..', 'b').write_text('x')", "os.rmdir(at[0])",
        args=[tmp_path / "mine"],
    )  # fmt: skip
    assert found[:4] == [0, 0, 0, 0]
    assert set(found[4:]) <= REFUSED


@needs_ports
def test_only_a_port_that_is_named_is_connected_to():
    with socket.create_server(("127.0.0.1", 0)) as mine, socket.create_server(("", 0)) as other:
        found = act(
            "give_up_files(ports=[int(at[0])])",
            *(f"socket.create_connection(('127.0.0.1', int(at[{i}])))" for i in (0, 1)),
            "socket.create_server(('127.0.0.1', 0))",
            args=[each.getsockname()[1] for each in (mine, other)],
        )
    assert found == [0, 0, errno.EACCES, errno.EACCES]


@needs_seccomp
def test_who_has_connected_gives_up_to_connect():
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = act(
            "give_up_calls(CONNECT)", "kept = socket.create_connection(('127.0.0.1', int(at[0])))",
            "socket.create_server(('127.0.0.1', 0))", "os.fork()", "give_up_calls()",
            "kept.send(b'x')", "socket.socket()", "kept.connect(('127.0.0.1', 9))",
            args=[server.getsockname()[1]],
        )  # fmt: skip
    assert found == [0, 0, errno.EPERM, errno.EPERM, 0, 0, errno.EPERM, errno.EPERM]


def test_limits():
    found = act(
        "set_limits(memory=1 << 26, files=20, written=1000)",
        "os.write(kept := os.memfd_create('x'), bytes(1000))", "os.write(kept, b'x')",
        "files = [os.memfd_create('x') for _ in range(20)]",
    )  # fmt: skip
    assert found == [0, 0, errno.EFBIG, errno.EMFILE]
    code = f"{PRELUDE}set_limits(memory=1 << 26, files=20)\nbytes(1 << 28)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert b"MemoryError" in done.stderr
