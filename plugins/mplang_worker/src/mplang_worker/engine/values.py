"""Values of a session at a worker: what was put, what runs made, and public inputs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from mplang_http.ext import PUBLIC_NAME

from mplang_worker.base.config import Limits
from mplang_worker.base.errors import RequestError
from mplang_worker.wire.stored_value import StoredValue, check_name


class SessionValues:
    """Values of a session. Safe for threads.

    Values that were put and results are found by their names, which a coordinator chooses. Public
    inputs are apart from them, by the SHA-256 of their bytes: none is found by a name.

    Args:
        session: name of the session; the names of its results begin with it.
        owner: whose values they are, for texts.
        limits: limits on their number and size.
    """

    def __init__(self, session: str, owner: str, limits: Limits) -> None:
        self._session, self._owner, self._limits = session, owner, limits
        self._named: dict[str, StoredValue] = {}
        self._public: dict[str, StoredValue] = {}
        self._uploads: Counter[str] = Counter()  # each literal of that content releases it once
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._named) + len(self._public)

    def add(self, found: Mapping[str, StoredValue]) -> str | None:
        """Add results, or return why there is no room for them."""
        with self._lock:
            full = self._full(found)
            if full is None:
                self._named |= found
            return full

    def put(self, name: str, value: StoredValue) -> None:
        """Add a value that was put.

        Raises:
            RequestError: the name is taken or that of a public input, or the session is full.
        """
        check_name(name)
        with self._lock:
            if name in self._named or name.startswith(f"{self._session}-"):  # that of a result
                raise RequestError(409, "taken", f"there is a value {name!r} already")
            self._make_room({name: value})
            self._named[name] = value

    def upload(self, digest: str, value: StoredValue) -> None:
        """Add a public input, if it is not there.

        Args:
            digest: SHA-256 of its bytes, in hex.
            value: the value.

        Raises:
            RequestError: the session is full.
        """
        with self._lock:
            if digest not in self._public:
                self._make_room({digest: value})
                self._public[digest] = value
            self._uploads[digest] += 1

    def get(self, name: str) -> StoredValue:
        """Return a value that was put, or a result.

        Raises:
            RequestError: there is no such value.
        """
        found = self._named.get(name)
        if found is None:
            raise RequestError(404, "unknown-value", f"no value {name[:100]!r} in this session")
        return found

    def public_input(self, digest: str) -> StoredValue:
        """Return a public input by the SHA-256 of its bytes.

        Raises:
            RequestError: it was not uploaded.
        """
        found = self._public.get(digest)
        if found is None:
            text = f"no public input {digest} was uploaded to this session"
            raise RequestError(404, "unknown-value", text)
        return found

    def release(self, names: Sequence[str]) -> int:
        """Release values, and public inputs by their names, and return how many there were."""
        with self._lock:
            gone = [value for name in names if (value := self._pop(name)) is not None]
            self._bytes -= sum(value.size for value in gone)
            return len(gone)

    def clear(self) -> None:
        """Release all."""
        with self._lock:
            self._named.clear()
            self._public.clear()

    def _pop(self, name: str) -> StoredValue | None:
        digest = name.removeprefix(PUBLIC_NAME)
        if digest == name:
            return self._named.pop(name, None)
        self._uploads[digest] -= 1
        if self._uploads[digest] > 0:
            return None
        del self._uploads[digest]
        return self._public.pop(digest, None)

    def _make_room(self, found: Mapping[str, StoredValue]) -> None:
        full = self._full(found)
        if full is not None:
            raise RequestError(429, "full", full)

    def _full(self, found: Mapping[str, StoredValue]) -> str | None:
        """Count values in, or return why there is no room for them."""
        size, limits = sum(value.size for value in found.values()), self._limits
        if len(self) + len(found) > limits.values or self._bytes + size > limits.held:
            return (
                f"{self._owner} keeps {limits.values} values of a session, and {limits.held} bytes "
                "of them, at most; let go of some first"
            )
        self._bytes += size
        return None
