"""Display of a value: what it is, where, who can read it and how; never its data."""

from __future__ import annotations

from mplang_analysis.report import Paragraphs, TextTable, sections
from mplang_core import Form, InterpVar, MPObject, TableType

NOT_READ = {
    Form.SHARE: "Secret: each party has a share, which tells nothing by itself.",
    Form.CIPHERTEXT: "Encrypted: who has the key can read it.",
    Form.KEY: "A key: it stays with its party.",
    Form.HANDLE: "A handle: the data is inside of what made it.",
}


def show(value: MPObject) -> str:
    """Return the card of a value as HTML.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     "9.75" in show(mp.evaluate(sim, lambda: mp.put("P0", 9.75)))
        False
    """
    base, text = value.base_type, str(value)
    if not isinstance(base, TableType):
        return sections([Paragraphs([text, _how(value)])])
    where = text.rpartition(" at ")[2]
    columns = TextTable("", ["column", "type"], list(base.columns))
    return sections([columns, Paragraphs([f"A table at {where}. {_how(value)}"])])


def _how(value: MPObject) -> str:
    form = value.base_type.form
    words = NOT_READ.get(form, "")
    if not isinstance(value, InterpVar):
        return f"{words} It is in a program that is being traced, and has no data yet.".strip()
    if form is Form.PLAIN:
        return "mp.fetch shows its data."
    opens = " mp.reveal it in a program, and fetch the result, to see it."
    return words + opens * (form is Form.SHARE)
