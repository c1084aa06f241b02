"""The control socket: its roles, its folder, and tables that nobody's names break."""

from __future__ import annotations

import grp
import os
import socket
import stat
from pathlib import Path

import pytest
import yaml
from mplang_http.cli.control import ControlClient
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.control_config import ControlConfig
from mplang_worker.control.listening import listen
from mplang_worker.control.peer import EVERY_ROLE, ControlRole, Credentials, Roles

from mplang_core.errors import ConfigError, RunError


def test_roles_are_by_groups_as_the_kernel_tells_them():
    names = {each.gr_name: each.gr_gid for each in grp.getgrall()}
    (first, a), (second, b), (third, c), *_ = names.items()
    roles = Roles(ControlConfig(path="s", operators=first, owners=second, auditors=third))
    stranger = 4_000_000
    assert roles.of(Credentials(stranger, frozenset({a}))) == {ControlRole.OPERATOR}
    assert roles.of(Credentials(stranger, frozenset({b, c}))) == {
        ControlRole.OWNER,
        ControlRole.AUDITOR,
    }
    assert roles.of(Credentials(stranger, frozenset())) == frozenset()
    assert roles.of(Credentials(0, frozenset())) == EVERY_ROLE
    with pytest.raises(ConfigError, match=r"control\.owners.*no group 'no-such-group'"):
        Roles(ControlConfig(path="s", owners="no-such-group"))


def test_names_of_coordinators_do_not_change_the_terminal(capsys):
    from mplang_http.cli.owner import show

    name = "eve\x1b[2J\u202eroot\n"
    show([{"coordinator": name, "parties": [name], "paused": True, "failures": 3}], "none")
    printed = capsys.readouterr().out
    assert r"eve\x1b[2J\u202eroot\n" in printed
    assert printed.isascii()
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == 2


def test_a_worker_without_a_socket_says_how_to_have_one(tmp_path):
    (tmp_path / "worker.yaml").write_text("name: bank\n")
    with pytest.raises(ConfigError, match="has no control socket; write `control: {path:"):
        ControlClient.of(str(tmp_path / "worker.yaml"), None)


def test_who_answers_as_no_worker_is_told_so(tmp_path):
    from threading import Thread

    for answer in (b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a": 1} ', b"\x00\xff"):
        with socket.socket(socket.AF_UNIX) as sock:
            path = str(tmp_path / f"s{len(answer)}")
            sock.bind(path)
            sock.listen()

            def serve(sock=sock, answer=answer):
                near, _ = sock.accept()
                with near:
                    near.recv(1 << 16)
                    near.sendall(answer)

            Thread(target=serve, daemon=True).start()
            with pytest.raises(RunError, match="answer"):
                ControlClient(path).request("GET", "jobs")


# -- the socket and its folder


def test_a_folder_that_is_open_to_others_is_refused(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(ConfigError, match="others may use .*mode 755"):
        listen(ControlConfig(path=str(tmp_path / "open" / "socket")))
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="not a folder of the worker's user"):
        listen(ControlConfig(path=str(tmp_path / "link" / "socket")))


def test_a_socket_is_replaced_only_if_nobody_listens(tmp_path):
    config = ControlConfig(path=str(tmp_path / "c" / "socket"))
    with listen(config), pytest.raises(ConfigError, match="another process listens"):
        listen(config)
    with listen(config):
        assert stat.S_IMODE(os.stat(config.path).st_mode) & 0o077 == 0
    os.unlink(config.path)
    Path(config.path).write_text("mine")
    with pytest.raises(ConfigError, match="is there, and no socket"):
        listen(config)
    assert Path(config.path).read_text() == "mine"
    with pytest.raises(ConfigError, match="too long"):
        listen(ControlConfig(path=str(tmp_path / "c" / ("x" * 200))))


def test_its_path_is_relative_to_the_file(tmp_path):
    fields = {"name": "bank", "control": {"path": "control/socket"}}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    config = WorkerConfig.from_yaml(tmp_path / "worker.yaml")
    assert config.control.path == str(tmp_path / "control" / "socket")
    (tmp_path / "worker.yaml").write_text("name: bank\ncontrol: {path: s, owner: x}\n")
    with pytest.raises(ConfigError, match=r"control\.owner"):
        WorkerConfig.from_yaml(tmp_path / "worker.yaml")
