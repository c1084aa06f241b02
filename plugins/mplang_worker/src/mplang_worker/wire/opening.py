"""Opening of a run: what a worker was shown of it, told to its peers before the first message.

The keys of a run's messages begin with the SHA-256 of all that the parties must have alike: the
run, the program, the parties with their certificates, the inputs and the settings. A worker that
was shown something else sends and expects other keys, so nobody understands it; the opening has
the hashes one by one, so that the error can say what differs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from mplang_analysis import Label
from mplang_http.ext import Sha256
from msgspec import Meta

from mplang_core.ext import WireError
from mplang_worker.base.digests import sha256

MAX_OPENING = 1 << 20  # bytes


class Logs(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Peers' log heads that a party remembers.

    Attributes:
        gated: whether it has a gate, and tells its peers when that permits a run.
        seen: by the name of a peer the last entry that it told before, as its gate has sealed it.
    """

    gated: bool = False
    seen: Annotated[dict[str, Annotated[str, Meta(max_length=512)]], Meta(max_length=1024)] = {}


NO_LOGS = Logs()


class Opening(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """View of a run at a worker, as SHA-256 in hex, and its knowledge of the inputs.

    Attributes:
        run: coordinator, session and run.
        program: of the program and its source lines.
        parties: of the parties in order, with the certificate of each.
        inputs: of public inputs, and of the names of the others at each party.
        settings: of the settings that the parties must have alike.
        history: of the runs of the session that this worker has followed; not part of the key.
        labels: per input the label of this worker's copy, in MessagePack; none without one.
        stored: by name the versions that this worker holds of what the run loads.
        logs: what it remembers of its peers' logs.
    """

    run: Annotated[str, Meta(max_length=1024)]
    program: Sha256
    parties: Sha256
    inputs: Sha256
    settings: Sha256
    history: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"\x90")
    stored: msgspec.Raw = msgspec.Raw(b"\x80")
    logs: Logs = NO_LOGS

    @property
    def key(self) -> str:
        """The name of the run on links: the SHA-256 of what all parties were shown alike."""
        return sha256([self.run, self.program, self.parties, self.inputs, self.settings])

    def write(self) -> bytes:
        """Encode it.

        Raises:
            WireError: it is larger than a peer takes.
        """
        data = _encoder.encode(self)
        if len(data) > MAX_OPENING:
            raise WireError(
                f"the labels of a run's inputs have at most {MAX_OPENING} bytes", code="L005"
            )
        return data

    def told(
        self, history: str, labels: Sequence[Label | None], stored: Mapping[str, Any] = {}
    ) -> Opening:
        """Return it with what this worker tells of its inputs and its storage.

        Args:
            history: of the runs that it has followed.
            labels: per input the label of its copy.
            stored: by name the versions that it holds, as plain data.
        """
        encoded = [None if each is None else each.encode() for each in labels]
        raw, held = msgspec.Raw(_encoder.encode(encoded)), msgspec.Raw(_encoder.encode(stored))
        return msgspec.structs.replace(self, history=history, labels=raw, stored=held)

    def read_stored(self) -> dict[str, Any]:
        """Return by name the versions that a worker tells that it holds, as plain data.

        Raises:
            WireError: it is malformed.
        """
        try:
            return _held.decode(self.stored)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WireError(
                f"a party's description of its storage is damaged: {error}", code="L005"
            ) from None

    @classmethod
    def read(cls, data: bytes) -> Opening:
        """Decode the opening of a peer.

        Raises:
            WireError: it is malformed.
        """
        try:
            return _decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WireError(f"no opening of a run: {error}", code="L005") from None

    def differences(self, other: Opening) -> str:
        """Return what differs between two openings of one run, in words.

        Example:
            >>> mine = Opening("run", *["0" * 64] * 4)
            >>> mine.differences(Opening("run", "1" * 64, *["0" * 64] * 2, "1" * 64))
            'another program and other settings'
        """
        words = {
            "program": "another program",
            "parties": "other parties or certificates",
            "inputs": "other inputs",
            "settings": "other settings",
        }
        names = [name for name in words if getattr(self, name) != getattr(other, name)]
        return " and ".join(words[name] for name in names)


def shared_name(coordinator: str, session: str, run: str = "") -> str:
    """Return the name of a run at all parties, or what the names of a session's runs begin with.

    Example:
        >>> shared_name("ann", "s", "s-0")
        'ann:s:s-0'
    """
    return f"{quote(coordinator, safe='')}:{session}:{run}"


@functools.lru_cache(maxsize=256)
def shown_program(digest: str, name: str) -> str:
    """Return the SHA-256 of a program by its digest and its name, the SHA-256 of its bytes."""
    return sha256([digest, name])


def read_labels(openings: Mapping[int, Opening], size: int) -> list[dict[int, Label]]:
    """Return per input the labels of the parties' copies.

    Args:
        openings: the openings of the parties by rank.
        size: the number of inputs.

    Raises:
        WireError: a party tells of another number of inputs, or a label is malformed.
    """
    found: list[dict[int, Label]] = [{} for _ in range(size)]
    for rank, opening in openings.items():
        try:
            each = _labels.decode(opening.labels)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WireError(
                f"what party {rank} tells of its inputs is damaged: {error}", code="L005"
            ) from None
        if len(each) != size:
            raise WireError(f"party {rank} tells {len(each)} labels of {size} inputs", code="L005")
        for labels, told in zip(found, each, strict=True):
            if told is not None:
                labels[rank] = Label.decode(told)
    return found


# built at import: msgspec crashes if two threads are the first to use a type
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(Opening)
_labels = msgspec.msgpack.Decoder(list[Any])
_held = msgspec.msgpack.Decoder(dict[str, Any])
