"""Section ``compiled_code`` of a worker's configuration: code that outlives an engine.

The front has the folder and the key, and hands bytes to and fro; only engines, which are confined,
load them. Each coordinator has a folder of its own: how quickly a program runs would tell one what
another has run, and what an engine leaves, which a coordinator's code may have taken over, reaches
engines of the same coordinator alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from pydantic import Field, ValidationError

from mplang_cache.code_folder import CodeBounds, CodeFolder
from mplang_cache.compiled_code import MAX_CODE, use_code_cache
from mplang_cache.owner_files import open_own_folder, read_or_make_key
from mplang_core.ext import ConfigError, StrictModel

NAME = "compiled_code"
MAX_WHY = 200  # characters that an engine may have in the log
log = logging.getLogger("mplang.cache")

Ask: TypeAlias = Callable[
    [str, Mapping[str, object], Sequence[int]], tuple[Mapping[str, object], Sequence[int]]
]
"""Question of an engine: method, arguments and open files; returns fields and open files."""

Answer: TypeAlias = tuple[dict[str, object], Sequence[int], None]
"""Answer of the front: fields, open files, and nothing to do afterwards."""


class CodeAsker(Protocol):
    """Session whose engine asks."""

    @property
    def coordinator(self) -> str:
        """Name of its coordinator."""


class CompiledCodeConfig(StrictModel):
    """Configuration of a worker's folder of compiled code.

    Attributes:
        folder: the folder, of the worker's user alone; it is made if it is not there.
        key_file: file with the key by which entries are known to be the worker's, at least 32
            random bytes, outside of the folder; it is made if it is not there. By default it is
            beside the folder, with ``.key`` after its name.
        size: bytes that each coordinator may have.
        entries: how many codes each coordinator may have.
    """

    folder: str
    key_file: str | None = None
    size: int = Field(default=CodeBounds().size, gt=0)
    entries: int = Field(default=CodeBounds().entries, gt=0)

    def at(self, folder: str) -> CompiledCodeConfig:
        """Return it with paths that do not depend on the working directory.

        Args:
            folder: the folder of the file that names it.

        Raises:
            ConfigError: the key lies in the folder.
        """
        base = os.path.abspath(folder)
        target = os.path.normpath(os.path.join(base, self.folder))
        key = os.path.normpath(os.path.join(base, self.key_file or f"{target}.key"))
        if os.path.commonpath([target, key]) == target:
            raise ConfigError(
                "key_file must be outside of the folder, so that who writes there has no key",
                code="C003",
            )
        return CompiledCodeConfig(**(self.model_dump() | {"folder": target, "key_file": key}))


def read_config(fields: object, folder: str) -> CompiledCodeConfig:
    """Return the section of a configuration.

    Args:
        fields: the fields of a :class:`CompiledCodeConfig`, or a path of its folder.
        folder: the folder that paths are relative to.

    Raises:
        ConfigError: a field is invalid.
    """
    if isinstance(fields, str):
        fields = {"folder": fields}
    if not isinstance(fields, Mapping):
        raise ConfigError(f"field {NAME!r}: expected a folder, or its fields", code="C003")
    try:
        return CompiledCodeConfig(**fields).at(folder)
    except ValidationError as error:
        text = CompiledCodeConfig.explain(error, dict(fields))
        raise ConfigError(f"field {NAME!r}: {text}", code="C003") from None
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"field {NAME!r}: {error}", code="C003") from None


class CompiledCodeSection:
    """Compiled code of a worker's coordinators.

    It is a ``mplang_worker.ext.Section``, the entry point ``compiled_code`` of ``mplang.sections``.
    """

    def read(self, fields: object, folder: str) -> dict[str, object]:
        """Return the fields of a :class:`CompiledCodeConfig`, with absolute paths.

        Args:
            fields: the section.
            folder: the folder that paths are relative to.

        Raises:
            ConfigError: a field is invalid.

        Example:
            >>> SECTION.read("compiled", "/srv")["key_file"]
            '/srv/compiled.key'
        """
        return read_config(fields, folder).model_dump(mode="json")

    def front(self, fields: object, worker: Mapping[str, object]) -> CodeProvider:
        """Return what answers engines.

        Args:
            fields: the section, as :meth:`read` returns it.
            worker: the worker's configuration, as plain data.

        Raises:
            ConfigError: the folder or the key is not the worker's own.
        """
        try:
            return CodeProvider(read_config(fields, "/"), str(worker["name"]))
        except ConfigError as error:
            raise ConfigError(f"field {NAME!r}: {error}", code="C003") from None

    def engine(self, ask: Ask) -> AskedCode:
        """Make this process, which is one coordinator's, keep its compiled code in the front.

        Args:
            ask: asks the front.
        """
        asked = AskedCode(ask)
        use_code_cache(asked)
        return asked


class CodeProvider:
    """Compiled code in the front, by coordinator. It is bytes there, and never loaded.

    Args:
        config: of the section.
        party: name of the party.

    Raises:
        ConfigError: the folder or the key is not the worker's own.
    """

    def __init__(self, config: CompiledCodeConfig, party: str) -> None:
        self._key = read_or_make_key(str(config.key_file))
        self._folder = open_own_folder(config.folder)
        self._bounds = CodeBounds(config.size, config.entries)
        self._party = party
        self._of: dict[str, CodeFolder | None] = {}
        self._lock = threading.Lock()

    def answer(
        self, asker: CodeAsker, method: str, args: Mapping[str, object], files: Sequence[int]
    ) -> Answer:
        """Return or keep code of a coordinator.

        Args:
            asker: the session of the engine.
            method: ``get``, ``put`` or ``drop``.
            args: as ``key`` its key; of ``put`` the ``code``; of ``drop``, ``why``.
            files: unused.

        Raises:
            ValueError: the question is none of these.
        """
        of, key = self._of_coordinator(asker.coordinator), args["key"]
        if not isinstance(key, str):
            raise ValueError("a key is text")
        if of is None:
            return {}, (), None
        if method == "get":
            return {"code": of.get(key)}, (), None
        if method == "put" and isinstance(args["code"], bytes) and len(args["code"]) <= MAX_CODE:
            of.put(key, args["code"])
        elif method == "drop":
            of.drop(key, ascii(args["why"])[:MAX_WHY])
        else:
            raise ValueError("no question about compiled code")
        return {}, (), None

    def release(self, session: str) -> None:
        """Do nothing: a session holds nothing here."""

    def _of_coordinator(self, name: str) -> CodeFolder | None:
        """Return the folder of a coordinator; ``None`` if it is not the worker's own any more."""
        with self._lock:
            if name not in self._of:
                owner = f"{len(self._party)}:{self._party}{name}"
                folder = hashlib.sha256(owner.encode()).hexdigest()[:32]
                try:
                    self._of[name] = CodeFolder(
                        folder, self._key, owner, self._bounds, within=self._folder
                    )
                except ConfigError as error:
                    log.warning("compiled code of %s is not kept: %s", name, error)
                    self._of[name] = None
            return self._of[name]


class AskedCode:
    """Compiled code of the engine's coordinator, which the front has.

    Args:
        ask: asks the front.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def get(self, key: str) -> bytes | None:
        """Return what an engine of this coordinator has put.

        Args:
            key: see :func:`mplang_cache.code_key`.
        """
        code = self._answer("get", {"key": key}).get("code")
        return code if isinstance(code, bytes) else None

    def put(self, key: str, code: bytes) -> None:
        """Keep a code.

        Args:
            key: see :func:`mplang_cache.code_key`.
            code: its bytes.
        """
        self._answer("put", {"key": key, "code": code})

    def drop(self, key: str, why: str) -> None:
        """Forget a code.

        Args:
            key: see :func:`mplang_cache.code_key`.
            why: for the worker's log.
        """
        self._answer("drop", {"key": key, "why": why})

    def _answer(self, method: str, args: Mapping[str, object]) -> Mapping[str, object]:
        try:
            return self._ask(method, args, ())[0]
        except OSError:  # the front has no room for more questions
            return {}


SECTION = CompiledCodeSection()
