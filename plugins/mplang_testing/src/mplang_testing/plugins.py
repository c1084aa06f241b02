"""What a distribution with plugins promises: light, complete, within its own names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from importlib_metadata import version
from packaging.specifiers import SpecifierSet

from mplang_testing import probe
from mplang_testing.suite import Suite, complain
from mplang_testing.tried import LOCAL_KERNELS, suites_of, untried

_PREFIXED = (
    "feop",
    "op",
    "type",
    "codec",
    "host kernel",
    "worker kernel",
    "native op",
    "joint run",
)
_LISTED = {"backend": "mplang.backends", "pass": "mplang.passes"}
_FREE = ("device kind", "transfer")  # of them two of one name are refused


class PluginSuite(Suite, kit=True):
    """An installed distribution loads by itself, says what it brings, and keeps to it.

    It is loaded in a process of its own, so it has to be installed (``pip install -e .``).

    Attributes:
        distribution: its name, as pip knows it.
        heavy: modules that must not be imported by loading the plugin: the engines that it
            brings, for these are imported when they are first used.

    Example:
        >>> class TestPlugin(PluginSuite):
        ...     distribution = "mplang-simulator"
        ...     heavy = ("hypothesis",)
    """

    distribution: ClassVar[str]
    heavy: ClassVar[Sequence[str]] = ()

    @property
    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = _ask(self.distribution, tuple(self.heavy))
        if not found["entries"]:
            complain(
                f"{self.distribution} brings no plugin",
                expected="an entry point of mplang.frontends, mplang.kernels, mplang.backends …",
                got="none of an installed distribution of that name",
                fix="add it to pyproject.toml, and install the distribution again",
            )
        return found

    def test_its_entry_points_load(self) -> None:
        """Each one names a module whose hooks are spelt right and return what they should."""
        self._nothing(
            self._facts["errors"],
            "has plugins that do not load",
            "each entry point loads",
            "correct what the error says",
        )

    def test_its_hooks_are_marked(self) -> None:
        """A function ``mplang_…`` without ``@hookimpl`` is never called, and nobody says so."""
        self._nothing(
            self._facts["unmarked"],
            "has functions that are named like hooks, and are none",
            "@hookimpl on each function mplang_…",
            "decorate them, or rename them",
        )

    def test_loading_it_is_light(self) -> None:
        """Listing what is installed imports no engine."""
        self._nothing(
            self._facts["loaded"],
            "imports heavy modules when it is loaded",
            f"none of {', '.join(self.heavy)}",
            "import them in the functions that use them",
        )

    def test_it_says_which_core_it_needs(self) -> None:
        """``Requires-Dist`` names mplang-core from this version on, and up to another."""
        mine = version("mplang-core")
        for group, name, _, requires in self._facts["entries"]:
            spec = SpecifierSet(requires)
            fits = spec.contains(mine, prereleases=True)
            if not requires or not fits or spec.contains("99999", prereleases=True):
                complain(
                    f"{self.distribution} ({name} in {group}) does not say which core it needs",
                    expected=f"a range of mplang-core with {mine} in it, as mplang-core>=0.1,<0.2",
                    got=requires or "no requirement of mplang-core",
                    fix="add it to the dependencies in pyproject.toml, and install it again",
                )

    def test_it_keeps_to_its_own_names(self) -> None:
        """What it registers stands under the names of its entry points, and as its own."""
        facts = self._facts
        names = {name for _, name, _, _ in facts["entries"]}
        listed = {
            what: {name for group, name, _, _ in facts["entries"] if group == of}
            for what, of in _LISTED.items()
        }
        homes = {module.partition(".")[0] for _, _, module, _ in facts["entries"]}
        strange = []
        for what, items in facts["brought"].items():
            for name, provider in items.items():
                stem = name.partition(".")[0] if what in _PREFIXED else name
                own = what in _FREE or stem in listed.get(what, names)
                if not own or provider not in {self.distribution, *homes}:
                    strange.append(f"the {what} {name} of {provider}")
        strange += [f"the setting {each}" for each in facts["settings"] if not _is_of(each, names)]
        self._nothing(
            strange,
            "registers what is not its own",
            f"names below {', '.join(sorted(names))}, provided by {self.distribution}",
            "rename it, or add an entry point of that name",
        )

    def test_ops_and_kernels_fit(self) -> None:
        """Every op has a kernel, every kernel an op."""
        facts = self._facts
        wrong = [f"the op {op} has no kernel" for op in facts["no kernel"]]
        wrong += [f"the kernel of {op} has no op" for op in facts["no op"]]
        self._nothing(
            wrong,
            "has ops without kernels, or kernels without ops",
            "a KernelSpec for each op, an OpDef or @simple_op for each kernel",
            "complete mplang_kernels or mplang_dialects",
        )

    def test_what_its_ops_declare_is_tried(self) -> None:
        """The suites that try what is believed of its ops stand in the file of this one."""
        tried = suites_of(sys.modules[type(self).__module__])
        self._nothing(
            [
                f"the op {op}: no {suite}"
                for suite, ops in self._facts["believed"].items()
                for op in ops
                if (suite, op.partition(".")[0]) not in tried
            ],
            "has ops whose declarations nothing tries",
            "a subclass of each of these suites, for the family, beside this PluginSuite",
            "write it, with samples; owners and analyses go by what an op declares of itself",
        )

    def test_what_it_brings_is_tried(self) -> None:
        """Check that what the kit has suites for has one each, in the file of this one."""
        facts = self._facts
        brought: dict[str, list[str]] = {
            what: list(names) for what, names in facts["brought"].items()
        }
        brought[LOCAL_KERNELS] = facts["local kernels"]
        for group, name, _, _ in facts["entries"]:
            brought.setdefault(group, []).append(name)
        self._nothing(
            list(untried(brought, sys.modules[type(self).__module__])),
            "brings what nothing tries",
            "a subclass of each of these suites, beside this PluginSuite",
            "write it; see the documentation of mplang_testing for what each suite asks for",
        )

    def test_everything_is_described(self) -> None:
        """``mplang describe`` knows what each feop is, and where it comes from."""
        facts = self._facts
        missing = [
            f"{thing} says nothing of itself" for thing, doc in facts["docs"].items() if not doc
        ]
        for name, told in facts["described"].items():
            origin = told["provenance"]
            if origin["distribution"] != self.distribution or not origin["version"]:
                missing.append(f"the feop {name} has the provenance {origin}")
            for field in ("doc", "example", "version", "dialects", "outputs"):
                if not told[field]:
                    missing.append(f"the feop {name} has no {field}")
            if not told["devices"] and not told["targets"]:
                missing.append(f"the feop {name} runs on no device that is installed")
        self._nothing(
            missing,
            "is described incompletely",
            "docstrings with examples, and complete metadata",
            "complete them",
        )

    def test_a_failure_leaves_nothing(self) -> None:
        """Where loading fails at the very end, all that was registered is taken back."""
        self._nothing(
            [f"the {what} {', '.join(names)}" for what, names in self._facts["left"].items()],
            "leaves things behind when it does not load",
            "nothing of it is registered",
            f"register through hooks, or with provider={self.distribution!r}",
        )

    def _nothing(self, found: Any, what: str, expected: str, fix: str) -> None:
        if found:
            lines = [f"{k}: {v}" for k, v in found.items()] if isinstance(found, dict) else found
            got = "\n            ".join(lines)
            complain(f"{self.distribution} {what}", expected=expected, got=got, fix=fix)


def _is_of(setting: str, families: set[str]) -> bool:
    """Return whether the name of a setting begins with a family: SHOP or MPLANG_SHOP."""
    name = setting.casefold().removeprefix("mplang_")
    rests = [name.removeprefix(family) for family in families if name.startswith(family)]
    return any(not rest[:1].isalnum() for rest in rests)


@functools.cache
def _ask(distribution: str, heavy: tuple[str, ...]) -> Any:
    try:
        return probe.ask(f"{probe.__name__}:installed", distribution, list(heavy))
    except RuntimeError as error:
        complain(
            f"{distribution} ends the process that looks at it",
            expected="errors in plugins are recorded",
            got=error,
            fix="see the traceback",
        )
