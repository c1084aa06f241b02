"""The conformance kit: what every plugin promises, as tests to inherit.

Write one class per suite in a test file of your plugin, and run pytest::

    from mplang_testing import KernelSuite, PluginSuite, Sample

    class TestKernels(KernelSuite):
        family = "hello"
        samples = (Sample("hello.scale", np.ones(3), attrs={"by": 2.0}),)

    class TestPlugin(PluginSuite):
        distribution = "acme-hello"

=====================  ===============================================================
:class:`FeopSuite`     feops: metadata, documents, the same bytes always, state, refusals
:class:`KernelSuite`   kernels: what ops promise is what they do
:class:`PartyOpSuite`  ops among parties: they send and forward what they declare
:class:`TypeSuite`     types and codecs: nothing is lost, nothing damaged gets in
:class:`BackendSuite`  backends: a program means the same as everywhere
:class:`CommunicatorSuite`  communicators: messages arrive once, under their key, or in an error
:class:`AttributeSuite`  attributes of ops: nothing is lost, nothing damaged gets in
:class:`DeviceSuite`   device kinds: values come back, and no way out is automatic
:class:`PassSuite`     passes: the same results, and nothing more disclosed
:class:`GuardSuite`    guards: numbers of enough units, of the columns that they name
:class:`LineageSuite`  ops with a lineage: rows as they are, chosen by what they name
:class:`AnalysisSuite`  analyses: a report of every program, the same each time
:class:`AdmissionSuite`  admission checks: an answer for every program
:class:`NativeSuite`   native services: right calls are answered, wrong ones refused
:class:`SourceSuite`   kinds of sources: what is stored is read, or an error says why not
:class:`MatcherSuite`  matchers: who learns has what is in common, the other one learns nothing
:class:`AttestationSuite`  providers of attestation: a quote is over one report, or refused
:class:`PluginSuite`   distributions: light, complete, within their own names
=====================  ===============================================================

A test of a suite is neither overridden nor deleted. One that cannot pass is named with its
reason in ``xfail``, and fails as soon as it passes: see :class:`Suite`.

The suites need pytest and Hypothesis. :mod:`mplang_testing.dialect` and
:mod:`mplang_testing.programs` need neither, so that a worker may import them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mplang_testing.admission import AdmissionSuite
    from mplang_testing.analyses import AnalysisSuite
    from mplang_testing.attestation import AttestationSuite
    from mplang_testing.attributes import AttributeSuite
    from mplang_testing.backends import BackendSuite
    from mplang_testing.communicators import CommunicatorSuite
    from mplang_testing.devices import DeviceSuite
    from mplang_testing.feops import FeopSuite
    from mplang_testing.guards import GuardSuite
    from mplang_testing.kernels import KernelSuite
    from mplang_testing.lineages import LineageSuite
    from mplang_testing.matchers import MatcherSuite
    from mplang_testing.natives import NativeCall, NativeSuite
    from mplang_testing.party_ops import PartyOpSuite
    from mplang_testing.party_sample import PartySample
    from mplang_testing.passes import PassSuite
    from mplang_testing.plugins import PluginSuite
    from mplang_testing.sample import Of, Sample
    from mplang_testing.sources import SourceSuite
    from mplang_testing.suite import Suite
    from mplang_testing.types import TypeSuite

__all__ = [
    "AdmissionSuite",
    "AnalysisSuite",
    "AttestationSuite",
    "AttributeSuite",
    "BackendSuite",
    "CommunicatorSuite",
    "DeviceSuite",
    "FeopSuite",
    "GuardSuite",
    "KernelSuite",
    "LineageSuite",
    "MatcherSuite",
    "NativeCall",
    "NativeSuite",
    "Of",
    "PartyOpSuite",
    "PartySample",
    "PassSuite",
    "PluginSuite",
    "Sample",
    "SourceSuite",
    "Suite",
    "TypeSuite",
]

_HOMES = {
    "AdmissionSuite": "admission",
    "AnalysisSuite": "analyses",
    "AttestationSuite": "attestation",
    "AttributeSuite": "attributes",
    "DeviceSuite": "devices",
    "PassSuite": "passes",
    "BackendSuite": "backends",
    "CommunicatorSuite": "communicators",
    "FeopSuite": "feops",
    "GuardSuite": "guards",
    "KernelSuite": "kernels",
    "LineageSuite": "lineages",
    "NativeCall": "natives",
    "NativeSuite": "natives",
    "Of": "sample",
    "PartyOpSuite": "party_ops",
    "PartySample": "party_sample",
    "PluginSuite": "plugins",
    "Sample": "sample",
    "MatcherSuite": "matchers",
    "SourceSuite": "sources",
    "Suite": "suite",
    "TypeSuite": "types",
}


def __getattr__(name: str) -> Any:
    """Import a suite when it is asked for; the dialect needs neither pytest nor Hypothesis."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("hypothesis", "pytest", "_pytest"):
            raise
        raise ImportError(
            f"{__name__}.{name} needs {error.name}: pip install mplang-testing"
        ) from error
