"""What a function reads without naming it: looked up like a global, or it has no key."""

from __future__ import annotations

import enum
import functools
import importlib
import operator
import sys
import types
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from mplang_cache import key_of

NAME = "settings_of_a_user"
RATE = 1.0
ask = getattr


@pytest.fixture
def settings(monkeypatch):
    """A module of the user's, with a rate that functions read."""
    module = types.ModuleType(NAME)
    module.__file__ = "/home/user/settings.py"
    module.inner = types.ModuleType(f"{NAME}.inner")
    module.inner.__file__ = "/home/user/inner.py"
    for each in (module, module.inner):
        exec("RATE = 1.0\ndef g(x):\n    return x + RATE\n", vars(each))
        monkeypatch.setitem(sys.modules, each.__name__, each)
    return module


def by_import(x):
    import settings_of_a_user

    return settings_of_a_user.g(x)


def by_import_as(x):
    import settings_of_a_user as s

    return x + s.RATE


def by_from(x):
    from settings_of_a_user import RATE

    return x + RATE


def by_from_as(x):
    from settings_of_a_user import g as h

    return h(x)


def by_import_in_a_function_in_it(x):
    def inner():
        import settings_of_a_user

        return settings_of_a_user.RATE

    return x + inner()


@pytest.mark.parametrize(
    "fn", [by_import, by_import_as, by_from, by_from_as, by_import_in_a_function_in_it]
)
def test_an_import_in_the_body_is_read_like_a_global(settings, fn):
    before = key_of(fn)
    settings.unread = 1
    assert key_of(fn) == before is not None
    settings.RATE = 5.0
    assert key_of(fn) not in (before, None)


def by_submodule(x):
    import settings_of_a_user.inner

    return x + settings_of_a_user.inner.RATE


def by_submodule_as(x):
    import settings_of_a_user.inner as i

    return i.g(x)


def by_from_submodule(x):
    from settings_of_a_user import inner

    return inner.g(x)


@pytest.mark.parametrize("fn", [by_submodule, by_submodule_as, by_from_submodule])
def test_a_submodule_that_is_imported_is_read_like_a_global(settings, fn):
    before = key_of(fn)
    settings.inner.RATE = 5.0
    assert key_of(fn) != before is not None


def test_a_relative_import_is_looked_up_beside_its_module(settings):
    scope = {"__name__": f"{NAME}.user", "__package__": NAME}
    exec("def fn(x):\n    from . import inner\n    return x + inner.RATE", scope)
    before = key_of(scope["fn"])
    settings.inner.RATE = 5.0
    assert key_of(scope["fn"]) != before is not None


def test_an_import_of_an_installed_package_keeps_the_key():
    def of_a_notebook(x):
        import math

        import numpy as np
        from numpy.linalg import norm

        return np.sqrt(x) + math.pi + norm(x)

    assert key_of(of_a_notebook) == key_of(of_a_notebook) is not None


@pytest.mark.needs("jax")
def test_functions_of_a_notebook_that_import_jax_within_keep_their_key():
    import jax

    def of_a_notebook(x):
        import jax
        import jax.numpy as jnp
        from jax import lax, nn

        return lax.fori_loop(0, 3, lambda i, v: nn.relu(v) + jnp.sum(jax.vmap(jnp.sin)(v)), x)

    assert jax.numpy is not None
    assert key_of(of_a_notebook) == key_of(of_a_notebook) is not None


def imports_what_is_not_loaded(x):
    import nobody_has_this

    return nobody_has_this.g(x)


def imports_random(x):
    import random

    return x + random.random()


def imports_gauss(x):
    from random import gauss

    return x + gauss(0, 1)


def test_an_import_that_cannot_be_looked_up_or_differs_has_no_key():
    assert key_of(imports_what_is_not_loaded) is None
    assert key_of(imports_random) is key_of(imports_gauss) is None


class Answers:
    """An object that answers to every name, as stand-ins for modules do."""

    asked: list[str] = []  # noqa: RUF012

    def __getattr__(self, name):
        self.asked.append(name)
        raise RuntimeError(name)

    @property
    def __class__(self):
        raise RuntimeError("__class__")


class Meta(type):
    rate = 1.0

    def __getattr__(cls, name):
        return RATE


class OfMeta(metaclass=Meta):
    pass


def hidden(settings):
    """Return functions, each with what it reads hidden in another way."""
    get, of_rate, ref = (
        settings.__getattribute__,
        operator.attrgetter("RATE"),
        weakref.ref(settings),
    )
    of_meta, proxy, read = OfMeta(), weakref.proxy(settings), lambda module: module.RATE
    return {
        "globals": lambda x: x + globals()["RATE"],
        "getattr": lambda x: x + getattr(settings, "RATE"),  # noqa: B009
        "getattr by another name": lambda x: x + ask(settings, "RATE"),
        "vars": lambda x: x + vars(settings)["RATE"],
        "__dict__": lambda x: x + settings.__dict__["RATE"],
        "eval": lambda x: x + eval("RATE"),
        "exec": lambda x: exec("RATE"),
        "attrgetter": lambda x: x + operator.attrgetter("RATE")(settings),
        "attrgetter made before": lambda x: x + of_rate(settings),
        "bound __getattribute__": lambda x: x + get("RATE"),
        "partial": functools.partial(getattr, settings, "RATE"),
        "sys.modules": lambda x: x + sys.modules[NAME].RATE,
        "import_module": lambda x: x + importlib.import_module(NAME).RATE,
        "__import__": lambda x: x + __import__(NAME).RATE,
        "metaclass": lambda x: x + OfMeta.rate,
        "metaclass of an instance": lambda x: x + type(of_meta).rate,
        "weakref": lambda x: x + ref().RATE,
        "proxy": lambda x: x + proxy.RATE,
        "handed on": lambda x: x + read(settings),
        "bound to a local name": lambda x: [m.RATE for m in [settings]],
        "of a function": lambda x: x + by_from.__globals__["RATE"],
    }


@pytest.mark.parametrize("how", sorted(hidden(types.ModuleType(NAME))))
def test_a_function_that_reads_what_it_does_not_name_has_no_key(settings, how):
    assert key_of(hidden(settings)[how]) is None


def test_a_module_that_answers_itself_has_no_key(settings):
    settings.__getattr__ = lambda name: 1.0
    assert key_of(lambda x: x + settings.anything) is None
    of_class = type("Lazy", (types.ModuleType,), {})("lazy")
    assert key_of(lambda x: x + of_class.anything) is None


def test_captured_values_are_not_asked_for_attributes():
    answers = Answers()
    key_of(lambda x: answers)
    key_of(lambda x: [answers, {1: answers}])
    assert Answers.asked == []


def test_a_module_read_by_two_functions_counts_for_both(settings):
    def reads_rate(x):
        return x + settings.RATE

    def reads_both(x):
        return settings.g(x) + reads_rate(x)

    before = key_of(reads_both)
    settings.RATE = 5.0
    after = key_of(reads_both)
    settings.g = lambda x: x
    assert None not in (before, after)
    assert len({before, after, key_of(reads_both)}) == 3


class Mode(enum.Enum):
    FAST = 1

    def apply(self, x):
        return x + RATE


class Pair(NamedTuple):
    low: float
    high: float

    def apply(self, x):
        return x + RATE


PAIR = Pair(1, 2)


@functools.wraps(np.add)
def wraps_an_installed_function(x):
    return x + RATE


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, mode=Mode.FAST: mode.apply(x),
        lambda x, pair=PAIR: pair.apply(x),
        lambda x: wraps_an_installed_function(x),
    ],
)
def test_methods_and_wrappers_are_read(monkeypatch, fn):
    before = key_of(fn)
    assert before == key_of(fn) is not None
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert key_of(fn) not in (before, None)


def test_an_attribute_of_a_function_counts():
    def fn(x):
        return x * fn.rate

    fn.rate = 1
    before = key_of(fn)
    fn.rate = 2
    assert key_of(fn) not in (before, None)


def test_a_masked_array_has_no_key():
    masked = np.ma.array([1, 2], mask=[True, False])
    assert key_of(lambda x: x + masked) is None
