"""What the front knows of programs: as many as fit, whoever runs them."""

from __future__ import annotations

from mplang_analysis import ProgramRequest
from mplang_worker.front.known_programs import KnownPrograms


def asked() -> ProgramRequest:
    return ProgramRequest("host", 0, ("bank",), "0" * 64, "pay", ())


def test_large_programs_make_room_for_one_another():
    known, made = KnownPrograms(100), {key: asked() for key in "abcd"}
    for key, size in (("a", 40), ("b", 50)):
        assert known.add(key, made[key], size) is made[key]
    assert known.get("a") is made["a"]
    assert known.add("a", made["b"], 40) is made["a"]  # the first, for which there are decisions
    known.add("c", made["c"], 60)
    assert [known.get(key) for key in "abc"] == [made["a"], None, made["c"]]
    known.add("d", made["d"], 1000)
    assert [known.get(key) for key in "abcd"] == [None, None, None, made["d"]]
    known.add("a", made["a"], 10)
    assert [known.get(key) for key in "ad"] == [made["a"], None]
