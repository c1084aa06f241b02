"""Rules to begin with: aggregates over at least 20 persons, and nothing at row level."""

from __future__ import annotations

from mplang_policy.owner import Owner

_HEAD = """\
// Rules of {party}, written by `mplang policy init`: aggregates over at least 20 persons to
// whoever runs a program, shares to the other parties, and nothing at row level.
// `mplang policy schema` prints what rules can speak of, `mplang policy test` tries them.
//
// Members of an SPU can change, unnoticed, what {party} gets from it. No data leaves by that, so it
// needs no permit. If what {party} gets decides much, write into it whom it does not rely on:
//   forbid (principal, action == Action::"rely", resource);
"""

_FOR_ONE = """
@id("{name} runs programs")
permit (
  principal == Coordinator::"{name}",
  action == Action::"run",
  resource
);

{reads}@id("shares for {name}")
permit (
  principal == Coordinator::"{name}",
  action in [Action::"disclose", Action::"forward", Action::"store"],
  resource
) when {{
  context.form == "share" && !context.discloses
}};

// Write into it by which columns may be filtered and grouped:
//   && [Column::"people.city"].containsAll(context.filtered)
// and by which rows may be joined with those of others, in place of context.matched.isEmpty():
//   [Column::"people.id"].containsAll(context.matched)
// and that no person may have more than half of a number (mp.guard.aggregate(..., max_share=0.5)):
//   && context.max_share <= 500000
@id("aggregates for {name}")
permit (
  principal == Coordinator::"{name}",
  action in [Action::"disclose", Action::"fetch"],
  resource
) when {{
  context.k >= 20 && context.matched.isEmpty() &&
  !["size", "duration"].contains(context.what)
}};

// Everyone learns whether an op fails, which may depend on data; limits.failures bounds how often.
// Nothing permits a "size" or a "duration" that depends on data, by which others could learn it.
@id("failures for {name}")
permit (
  principal == Coordinator::"{name}",
  action == Action::"disclose",
  resource == Everyone::"everyone"
) when {{
  context.what == "failure"
}};
"""


_READS = """\
@id("{name} reads")
permit (
  principal == Coordinator::"{name}",
  action == Action::"read",
  resource
) when {{
  [
    {columns}
  ].containsAll(context.columns)
}};

"""


def starter(owner: Owner) -> str:
    """Return rules to begin with.

    Args:
        owner: the owner whose worker they are for.
    """
    columns = [f'Column::"{_quoted(each)}"' for each in sorted(owner.names.known["Column"])]
    parts = []
    for name in map(_quoted, owner.coordinators):
        reads = _READS.format(name=name, columns=",\n    ".join(columns)) if columns else ""
        parts.append(_FOR_ONE.format(name=name, reads=reads))
    return _HEAD.format(party=owner.party) + "".join(parts)


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')
