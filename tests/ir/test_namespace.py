"""Names: each has one thing and one provider, and is loaded when it is first asked for."""

from __future__ import annotations

import pytest

from mplang_core.errors import PluginConflictError
from mplang_core.namespace import Namespace


@pytest.fixture
def things() -> Namespace[object]:
    return Namespace("thing")


def test_what_was_added_is_found_with_its_provider(things):
    thing = object()
    things.add("a", thing, provider="one")
    assert things.get("a") is things.peek("a") is thing
    assert things.provider("a") == "one"
    assert "a" in things


def test_an_unknown_name_gives_nothing(things):
    assert things.get("a") is None
    assert things.peek("a") is None
    assert things.provider("a") is None
    assert "a" not in things
    things.remove("a")


def test_names_are_sorted_and_iterate_with_their_things(things):
    for name in "bca":
        things.add(name, name.upper(), provider="one")
    assert things.names() == ["a", "b", "c"]
    assert list(things) == [("a", "A"), ("b", "B"), ("c", "C")]


def test_the_same_object_may_be_added_again(things):
    thing = object()
    things.add("a", thing, provider="one")
    things.add("a", thing, provider="two")
    assert things.get("a") is thing
    assert things.names() == ["a"]


def test_a_conflict_names_the_thing_and_both_providers_and_changes_nothing(things):
    first = [1]
    things.add("a", first, provider="mplang-one")
    with pytest.raises(PluginConflictError) as caught:
        things.add("a", [1], provider="mplang-two")
    for part in ("thing", "'a'", "mplang-one", "mplang-two"):
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert things.get("a") is first
    assert things.provider("a") == "mplang-one"


def test_one_provider_does_not_replace_its_own_thing_by_accident(things):
    things.add("a", object(), provider="one")
    with pytest.raises(PluginConflictError):
        things.add("a", object(), provider="one")


def test_override_replaces_the_thing_and_the_provider(things):
    thing = object()
    things.add("a", object(), provider="one")
    things.add("a", thing, provider="two", override=True)
    assert things.get("a") is thing
    assert things.provider("a") == "two"


def test_a_removed_name_is_free_again(things):
    things.add("a", 1, provider="one")
    things.remove("a")
    assert things.get("a") is None
    things.add("a", 2, provider="two")
    assert things.get("a") == 2


# -- resolver


def test_the_resolver_is_asked_once_for_a_name_that_is_not_here(things):
    asked = []

    def load(name):
        asked.append(name)
        things.add(name, name.upper(), provider="loaded")

    things.set_resolver(load)
    things.add("known", 1, provider="one")
    assert things.get("known") == 1
    assert [things.get("a"), things.get("a"), things.get("b")] == ["A", "A", "B"]
    assert asked == ["a", "b"]
    assert things.provider("a") == "loaded"


def test_a_look_up_that_fails_asks_the_resolver_once(things):
    asked = []
    things.set_resolver(asked.append)
    assert things.get("a") is None
    assert asked == ["a"]


def test_peeking_and_listing_load_nothing(things):
    asked = []
    things.set_resolver(asked.append)
    assert things.peek("a") is None
    assert things.provider("a") is None
    assert things.names() == list(things) == []
    assert asked == []


def test_asking_whether_a_name_is_there_loads_it(things):
    things.set_resolver(lambda name: things.add(name, 1, provider="loaded"))
    assert "a" in things


def test_an_error_of_the_resolver_reaches_the_one_who_asks(things):
    def load(name):
        raise ImportError(name)

    things.set_resolver(load)
    with pytest.raises(ImportError, match="a"):
        things.get("a")
    things.set_resolver(None)
    assert things.get("a") is None
