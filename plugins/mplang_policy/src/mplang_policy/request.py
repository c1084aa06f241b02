"""Requests: what a program would do, as the rules of one party are asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mplang_analysis import DisclosureRow
from mplang_analysis.ext import in_quotes, is_plain, quoted, quoted_line, shortened


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that rules name.

    Attributes:
        type: its type in the schema.
        id: its name.
    """

    type: str
    id: str

    def __str__(self) -> str:
        return f"{self.type}::{in_quotes(self.id, None)}"

    @property
    def told(self) -> str:
        """Its name, as people read it: ``people.pay``, ``mean(people.pay)``."""
        function, _, column = self.id.partition("(")
        if self.type == "Aggregate" and is_plain(function) and column.endswith(")"):
            return f"{function}({quoted(column[:-1])})"
        return quoted(self.id)

    def to_cedar(self) -> dict[str, Any]:
        """Return it as a value in a context."""
        return {"__entity": {"type": self.type, "id": self.id}}


EVERYONE = Entity("Everyone", "everyone")


@dataclass(frozen=True, slots=True)
class Request:
    """Question to the rules of a party: may this coordinator's program do this?

    Attributes:
        coordinator: who runs it.
        action: ``run``, ``read``, ``disclose``, ``forward``, ``fetch``, ``store``, ``put`` or
            ``rely``.
        resource: a program, data set or receiver; of ``rely`` who can change what the party gets.
        context: the rest, by the schema; sets are tuples.
        row: the row of the disclosure table, if it is about one.
        read: columns that are offered to match on, and of which it tells something else.
    """

    coordinator: str
    action: str
    resource: Entity
    context: Mapping[str, Any]
    row: DisclosureRow | None = None
    read: tuple[str, ...] = ()

    def approved(self) -> Request:
        """Return it for a program that the owner has signed."""
        return replace(self, context={**self.context, "approved": True})

    def to_cedar(self) -> dict[str, Any]:
        """Return it as Cedar takes it."""
        return {
            "principal": {"type": "Coordinator", "id": self.coordinator},
            "action": {"type": "Action", "id": self.action},
            "resource": {"type": self.resource.type, "id": self.resource.id},
            "context": {name: _plain(value) for name, value in self.context.items()},
        }


LEFT = ("program", "parties", "mode")  # of a request, which stand beside its rows
OF_MATCHES = ("tried", "least")


def told(request: Request) -> dict[str, Any]:
    """Return a request as plain data, as log and approvals have it: no text of it is long."""
    fields = request.context.items()
    context = {name: _told(value) for name, value in fields if name not in LEFT}
    for name in OF_MATCHES:
        if not context.get(name):  # as approvals of before there were matches have it
            context.pop(name, None)
    line = {} if request.row is None else {"line": shortened(request.row.line)}
    resource = shortened(str(request.resource))
    return {"action": request.action, "resource": resource, **context, **line}


def _told(value: Any) -> Any:
    if isinstance(value, Entity):
        return shortened(value.id)
    if isinstance(value, tuple):
        return [_told(each) for each in value]
    return shortened(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Entity):
        return value.to_cedar()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


# -- in words


def describe(request: Request) -> str:
    """Return what a request is about, in words.

    Example:
        >>> describe(Request("analyst", "read", Entity("DataSet", "people"), {"columns": ()}))
        'to have data set people read'
    """
    match request.action:
        case "run":
            return f"to run {quoted(request.context['name'])}"
        case "read":
            return f"to have data set {request.resource.told} read"
        case "put":
            return "a value that is put"
    data, receiver = _data(request), _receiver(request.resource)
    row = request.row
    line = f" at {quoted_line(row.line)}" if row is not None and row.line else ""
    if request.action == "store":
        name = request.context["stored"]
        return f"to have {data} stored as {shortened(name)!r} by {request.resource.told}"
    kind = _type(request.context["type"])
    how = f"{request.context['form']} {kind} ({request.context['what']})"
    if request.action == "rely":
        return f"that {receiver} can change, unnoticed, {how}{line} made of {data}"
    return f"that {receiver} gets {how}{line} made of {data}"


def _type(text: str) -> str:
    """Return a type; one that is too long in quotes, as its end may be within a name."""
    cut = shortened(text)
    return text if cut == text else in_quotes(cut, None)


def _receiver(resource: Entity) -> str:
    name = resource.told
    return {"Host": f"the host, {name},", "Everyone": "everyone"}.get(resource.type, name)


def _data(request: Request) -> str:
    columns = [each.told for each in request.context["columns"]]
    others = [f"{each.told}'s data" for each in request.context["others"]]
    more = f" and {len(columns) - 3} more columns" if len(columns) > 3 else ""
    names = [", ".join(columns[:3]) + more] if columns else []
    return " and ".join([*names, *others]) or "nothing of anyone's"
