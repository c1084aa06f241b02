"""Matchers of libpsi: RR22 (CCS 2022), KKRT (CCS 2016) and ECDH, for two parties.

libpsi reads and writes files in its working directory, and orders lines by ``sh``, ``tail`` and
``sort``. It sends a SHA-256 of its whole input in the clear, so it gets tokens alone.

References:
    Raghuraman and Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", 2022.
    Kolesnikov, Kumaresan, Rosulek and Trieu, "Efficient Batched Oblivious PRF", 2016.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mplang_core.ext import MPLangError, RunError
from mplang_match.lines import SIZE, TEXT
from mplang_match.matcher import LEFT, MatchLink

COLUMN = b"token\n"

SMALLEST = {"KKRT": 4096}
"""How many tokens a protocol matches at least, at the party that learns what is in common.

KKRT places that party's set in a table by cuckoo hashing, and libpsi fails if it has not found a
place for each in 128 rounds: once in some thousand times for 30 tokens, and once in some ten
million from this size on, by a simulation of it. What decides is the tokens, which are random.
"""


@dataclass(frozen=True, slots=True)
class PsiMatcher:
    """Matcher of libpsi.

    Attributes:
        protocol: name of the protocol in libpsi.
    """

    protocol: str

    def match(self, link: MatchLink, tokens: memoryview, *, learns: bool) -> memoryview | None:
        """Match tokens; see :class:`mplang_match.Matcher`."""
        with tempfile.TemporaryDirectory(prefix="match-", dir=link.folder or None) as folder:
            source, target = Path(folder, "tokens.csv"), Path(folder, "common.csv")
            with source.open("wb") as file:
                file.write(COLUMN)
                file.write(tokens)
                if learns:
                    file.write(_more(SMALLEST.get(self.protocol, 0) - len(tokens) // TEXT))
            _Psi(self.protocol, link, str(source), str(target), learns).run()
            common = memoryview(_read(target)) if learns else None
        if link.folder:
            _clear(Path(link.folder))  # what libpsi leaves
        return common


class _Psi:
    """One matching by libpsi, in a thread of its own.

    An exception of a link would get into libpsi's threads, and end the process; so a link that has
    failed never comes back, and whoever waits for the end is told by it instead.
    """

    def __init__(
        self, protocol: str, link: MatchLink, source: str, target: str, learns: bool
    ) -> None:
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._link = link
        self._context = _context(link, self._fail)
        self._config = _config(protocol, link, source, target, learns)

    def run(self) -> None:
        """Run it to its end.

        Raises:
            MPLangError: it fails.
        """
        threading.Thread(target=self._execute, name=LEFT, daemon=True).start()
        self._done.wait()
        if self._error is None:
            return
        if isinstance(self._error, MPLangError):
            raise self._error
        raise RunError(f"libpsi failed: {self._error}", code="R017") from self._error

    def _execute(self) -> None:
        import spu.libpsi as libpsi

        try:
            libpsi.psi_execute(self._config, self._context)
        except BaseException as error:
            self._error = self._error or error
        self._done.set()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._done.set()


def _context(link: MatchLink, fail: Any) -> Any:
    from mplang_spu.ext import libspu

    from mplang_match.channel import PsiChannel

    ends = sorted([link.communicator.rank, link.peer])
    description = libspu.link.Desc()
    description.id = "match"  # its keys begin with that of the link
    description.recv_timeout_ms = int(link.timeout * 1000)
    for rank in ends:
        description.add_party(f"P{rank}", f"P{rank}")
    channels = [None if rank == link.communicator.rank else PsiChannel(link, fail) for rank in ends]
    return libspu.link.create_with_channels(description, 1 - int(link.is_first), channels)


def _config(protocol: str, link: MatchLink, source: str, target: str, learns: bool) -> Any:
    import spu.libpsi as libpsi

    receiver = link.communicator.rank if learns else link.peer
    ends = sorted([link.communicator.rank, link.peer])
    return libpsi.PsiExecuteConfig(
        protocol_conf=libpsi.PsiProtocolConfig(
            protocol=getattr(libpsi.PsiProtocol, f"PROTOCOL_{protocol}"),
            receiver_rank=ends.index(receiver),
            broadcast_result=False,
            ecdh_params=libpsi.EcdhParams(curve=libpsi.EllipticCurveType.CURVE_25519),
        ),
        input_params=libpsi.InputParams(path=source, selected_keys=["token"], keys_unique=True),
        output_params=libpsi.OutputParams(path=target, disable_alignment=True),
    )


def _more(count: int) -> bytes:
    """Return random tokens, which are in common with nobody."""
    return b"".join(b"%s\n" % os.urandom(SIZE).hex().encode() for _ in range(count))


def _read(path: Path) -> bytes:
    """Return the lines of a file of libpsi without its head, which it quotes."""
    if not path.exists():
        raise RunError("libpsi gave nothing", code="R017")
    _, _, lines = path.read_bytes().partition(b"\n")
    return lines


def _clear(folder: Path) -> None:
    """Remove what was left in a folder."""
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


RR22, KKRT, ECDH = PsiMatcher("RR22"), PsiMatcher("KKRT"), PsiMatcher("ECDH")
